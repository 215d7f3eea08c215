// Parts of a problem, as calls of their own: some rows of a head, some keys.
#pragma once

#include "engine_problem.h"

namespace attn::tests {

/// Which rows: of one sequence and the query heads of one key/value head, `count` from `first` on.
struct RowRange {
  std::int64_t sequence = 0, kv_head = 0, first = 0, count = 0;
};

/// The rows as a problem of their own: they keep their positions and their masks. Not for packed sequences.
Problem rows_of(const Problem& problem, const RowRange& rows);

/// The rows of the whole problem's answer that rows_of() computes.
Answer rows_of(const Problem& problem, const Answer& whole, const RowRange& rows);

/// Whether some rows of the problem, one alone and three runs of them drawn by `seed`, have the bits of the whole. Not for
/// packed sequences.
testing::AssertionResult rows_alone_agree(const Problem& problem, std::uint64_t seed);

/// The keys [first, first + count) with all queries, at the positions that they have in the whole; without sinks,
/// which join when the parts are merged. Not for packed sequences.
Problem keys_of(const Problem& problem, std::int64_t first, std::int64_t count);

/// Where query 0 of each sequence sits, whatever the alignment. Not for packed sequences.
std::vector<std::int64_t> position_offsets_of(const Problem& problem);

/// The memory of a State.
struct StateParts {
  explicit StateParts(const Problem& problem);
  State state();
  Tensor max, sum, out;
};

}  // namespace attn::tests

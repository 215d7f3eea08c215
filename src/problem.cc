#include "src/problem.h"

#include <algorithm>

#include "attn/numerics.h"

namespace attn {

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

Sequence Problem::sequence(std::int64_t index) const {
  Sequence s;
  s.index = index;
  if (packed()) {
    s.query_row = query_starts[index];
    s.queries = query_starts[index + 1] - query_starts[index];
    if (!cached) {
      s.key_row = key_starts[index];
      s.keys = key_starts[index + 1] - key_starts[index];
    }
  } else {
    s.tensor_batch = index;
    s.queries = query_lengths.empty() ? q.shape[2] : query_lengths[index];
    s.keys = key_lengths.empty() ? k.shape[2] : key_lengths[index];
  }
  if (cached) s.keys = cached->sequences[index].tokens;
  switch (alignment) {
    case Alignment::equal_lengths:
    case Alignment::top_left: break;
    case Alignment::bottom_right: s.position_offset = s.keys - s.queries; break;
    case Alignment::offset:
      s.position_offset = position_offsets.empty() ? position_offset : position_offsets[index];
      break;
  }
  return s;
}

BlockKeys keys_in_block(const Problem& problem, const Sequence& sequence, std::int64_t block) {
  return {std::max(block, problem.key_offset), std::min(block + kBlockKeys, problem.key_offset + sequence.keys)};
}

RowKeys row_keys(const Problem& problem, const Sequence& sequence, std::int64_t row) {
  const std::int64_t position = saturating_add(sequence.position_offset, row);
  const std::int64_t first = problem.key_offset;
  std::int64_t cap = saturating_add(first, sequence.keys);
  if (problem.causal) cap = std::clamp(saturating_add(position, 1), first, cap);

  RowKeys keys;
  keys.begin = first;
  keys.end = cap;
  if (problem.window_left != Problem::kUnbounded) {
    keys.begin = std::clamp(saturating_add(position, -problem.window_left), first, cap);
  }
  if (problem.window_right != Problem::kUnbounded) {
    keys.end = std::clamp(saturating_add(saturating_add(position, problem.window_right), 1), keys.begin, cap);
  }
  keys.first = first;
  keys.sink_end = std::clamp(problem.sink_tokens, first, cap);
  if (keys.sink_end >= keys.begin) {  // one interval
    keys.begin = first;
    keys.end = std::max(keys.end, keys.sink_end);
    keys.sink_end = first;
  }
  return keys;
}

}  // namespace attn

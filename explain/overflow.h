// Where numbers went beyond the range of f64: a lesson must not speak of such rows as of any others.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/trace.h"

namespace attn::explain {

/// The queries that see a key whose score, on its way or finished, is not finite. A score that is −∞ because the key
/// is hidden does not count.
std::vector<std::size_t> rows_of_overflowed_scores(const reference::Problem& problem, const reference::Trace& trace,
                                                   const reference::HeadTrace& head);

/// The rows that hold a number that is not finite.
std::vector<std::size_t> rows_not_finite(const reference::Matrix& matrix);

}  // namespace attn::explain

// The order of arithmetic, written down: one row at a time, in plain C++ with explicit fused multiply-adds.
//
// This is what every kernel must equal, bit for bit; it is also the path of machines without a SIMD target. It
// knows neither tiles nor plans nor threads. docs/numerics.md tells the same in words.
#pragma once

#include <vector>

#include "src/arithmetic/scalar.h"
#include "src/problem.h"

namespace attn::specification {

template <class T>
struct RowState {
  T max = kMinusInfinity<T>;
  T sum = 0;
  std::vector<T> out;
};

/// The state of one row over all keys of the problem.
template <class T>
RowState<T> attend_row(const Problem& problem, const Sequence& sequence, std::int64_t head, std::int64_t row);

/// The row's scores in units of log2(e), one for each key of the sequence; −∞ where a key is hidden.
template <class T>
void score_row(const Problem& problem, const Sequence& sequence, std::int64_t head, std::int64_t row, T* scores);

}  // namespace attn::specification

// (max, sum, out) of a row and its merge: splits of the keys, sink logits and partial results all use this one.
//
// max is in units of log2(e): weights are 2^(score − max). The empty state (−∞, 0, 0) is neutral.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/arithmetic/scalar.h"

namespace attn {

/// What to subtract from scores whose maximum is `max`: nothing is subtracted while no score is finite, since
/// −∞ − −∞ is NaN.
template <class T>
T subtrahend(T max) {
  return max == kMinusInfinity<T> ? T(0) : max;
}

/// The factors by which the two sides of a merge are rescaled.
template <class T>
struct MergeFactors {
  T max, first, second;
};

template <class T>
MergeFactors<T> merge_factors(T first_max, T second_max) {
  const T max = std::max(first_max, second_max);
  const T subtract = subtrahend(max);
  return {max, exp2_nonpositive(first_max - subtract), exp2_nonpositive(second_max - subtract)};
}

/// first ← first merged with second.
template <class T>
void merge_row(T* max, T* sum, T* out, T next_max, T next_sum, const T* next_out, std::int64_t columns) {
  const MergeFactors<T> factors = merge_factors(*max, next_max);
  *max = factors.max;
  *sum = std::fma(*sum, factors.first, next_sum * factors.second);
  for (std::int64_t c = 0; c < columns; ++c) out[c] = std::fma(out[c], factors.first, next_out[c] * factors.second);
}

/// A sink logit is a key without a value: the state (logit·log2(e), 1, 0), merged last.
template <class T>
void merge_sink(T* max, T* sum, T* out, double logit, std::int64_t columns) {
  const MergeFactors<T> factors = merge_factors(*max, static_cast<T>(logit * kLog2E));
  *max = factors.max;
  *sum = std::fma(*sum, factors.first, factors.second);
  for (std::int64_t c = 0; c < columns; ++c) out[c] *= factors.first;
}

/// log Σ exp(score), natural log, of a finished state; −∞ for the empty one.
template <class T>
double lse_of(T max, T sum) {
  if (sum == 0) return -std::numeric_limits<double>::infinity();
  return std::fma(static_cast<double>(max), kLn2, natural_log(static_cast<double>(sum)));
}

}  // namespace attn

// The arithmetic of one number at a time: what each lane of a kernel does, in plain C++.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attn/numerics.h"
#include "src/arithmetic/constants.h"

namespace attn {

template <class T>
inline constexpr T kMinusInfinity = -std::numeric_limits<T>::infinity();

/// The parts of exp2(x), x ≤ 0: 2^x = 2·(1 + part)·half_power, part = 2^f − 1 doubled. NaN stays in `doubled_part`.
template <class T>
struct Exp2Parts {
  T doubled_part;  // 2·(2^f − 1)
  T half_power;    // 2^(n−1), +0 at the lowest n
  T fraction;      // f
};

template <class T>
inline Exp2Parts<T> split_exp2(T x) {
  using Constants = Exp2<T>;
  using Bits = typename Constants::Bits;
  x = x < Constants::kLowest ? Constants::kLowest : x;  // false for NaN, which stays
  const T rounded = x + Constants::kRound;
  const T fraction = x - (rounded - Constants::kRound);
  const Bits power = std::bit_cast<Bits>(rounded) << Constants::kMantissaBits;
  T polynomial = Constants::kCoefficients[Constants::kDegree];
  for (int i = Constants::kDegree - 1; i >= 1; --i) {
    polynomial = std::fma(polynomial, fraction, Constants::kCoefficients[i]);
  }
  return {polynomial, std::bit_cast<T>(power), fraction};
}

/// 2^x for x ≤ 0, within 1 ULP; +0 for x < −125.5 (f64: −1021.5); 1 at 0; NaN at NaN.
template <class T>
inline T exp2_nonpositive(T x) {
  const Exp2Parts<T> parts = split_exp2(x);
  return std::fma(parts.doubled_part, parts.fraction, Exp2<T>::kCoefficients[0]) * parts.half_power;
}

/// tanh(z) = −E / (2 + E), E = exp(−2|z|) − 1. E comes from the same parts as exp2 without cancellation, since
/// the polynomial's first coefficient is exactly 1: tanh keeps its relative accuracy near 0.
template <class T>
inline T tanh_of(T z) {
  const Exp2Parts<T> parts = split_exp2(static_cast<T>(-2 * kLog2E) * std::fabs(z));
  const T power_minus_one = std::fma(T(2), parts.half_power, T(-1));
  const T e = std::fma(parts.doubled_part * parts.fraction, parts.half_power, power_minus_one);
  return std::copysign(e / (T(2) + e), z);
}

/// The lanes of a row sum fold by halves, 64 → 32 → 16 → … → 1; the sum is left in the first.
template <class T>
inline T fold_lanes(T (&lanes)[kSumLanes]) {
  for (std::int64_t width = kSumLanes / 2; width >= 1; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

/// ln(x) for finite x > 0, within about an ULP of f64. Our own, since the one of libm depends on the processor.
double natural_log(double x);

/// One pattern for zero and one for NaN, so that results can be compared as bytes.
template <class T>
inline T canonical(T x) {
  const T sum = x + T(0);  // −0 + 0 = +0; outside the choice, so that loops over this become vectors
  return sum != sum ? std::numeric_limits<T>::quiet_NaN() : sum;
}

}  // namespace attn

// The numbers that every path shares, so that all of them round alike.
#pragma once

#include <cstdint>
#include <numbers>

namespace attn {

inline constexpr double kLog2E = std::numbers::log2e;
inline constexpr double kLn2 = std::numbers::ln2;

/// exp2(x) for x ≤ 0: x = n + f with |f| ≤ 1/2, then 2·p(f) · 2^(n−1), p a polynomial with p(0) = 1 exactly.
///
/// Doubling the coefficients buys the zero at the bottom for nothing: 2^(n−1) is built by a shift and is +0 at
/// n = kLowest, so a hidden key (score −∞, raised to kLowest) weighs +0 and no denormal ever appears.
/// n comes from adding kRound: the low bits of the sum are then n − kLowest, ready to be shifted into place.
///
/// The polynomials are least-squares fits of the relative error at Chebyshev nodes, rounded coefficient by
/// coefficient, each time refitting the rest. Largest error over every float of the range: 0.80 ULP (degree 5:
/// 2.0 ULP). f64, degree 11: the polynomial's own error is 0.05 of a unit roundoff.
template <class T>
struct Exp2;

template <>
struct Exp2<float> {
  using Bits = std::uint32_t;
  static constexpr float kLowest = -126.0f;
  static constexpr float kRound = 0x1.8p23f + 126.0f;
  static constexpr int kMantissaBits = 23;
  static constexpr int kDegree = 6;
  static constexpr float kCoefficients[kDegree + 1] = {
      2.0f, 0x1.62e43p+0f, 0x1.ebfbd8p-2f, 0x1.c6af78p-4f, 0x1.3b30bp-6f, 0x1.5f0a66p-9f, 0x1.3f906cp-12f};
};

template <>
struct Exp2<double> {
  using Bits = std::uint64_t;
  static constexpr double kLowest = -1022.0;
  static constexpr double kRound = 0x1.8p52 + 1022.0;
  static constexpr int kMantissaBits = 52;
  static constexpr int kDegree = 11;
  static constexpr double kCoefficients[kDegree + 1] = {2.0,
                                                        0x1.62e42fefa39efp+0,
                                                        0x1.ebfbdff82c5a5p-2,
                                                        0x1.c6b08d704a122p-4,
                                                        0x1.3b2ab6fb9ffb3p-6,
                                                        0x1.5d87fe78a111cp-9,
                                                        0x1.4309130f139cbp-12,
                                                        0x1.ffcbfc595bcf6p-16,
                                                        0x1.62bfc71ea7788p-19,
                                                        0x1.b5253f6036401p-23,
                                                        0x1.e61c1058a1947p-27,
                                                        0x1.e9471c875b804p-31};
};

}  // namespace attn

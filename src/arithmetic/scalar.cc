#include "src/arithmetic/scalar.h"

namespace attn {

double natural_log(double x) {
  if (!(x < std::numeric_limits<double>::infinity())) return x;
  // x = 2^e·m with m in [√½, √2); ln m = 2·artanh(s), s = (m − 1)/(m + 1), |s| < 0.172: the series ends at s^21.
  int exponent;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double series = 0;
  for (int k = 21; k >= 3; k -= 2) series = std::fma(series, square, 1.0 / k);
  const double log_m = 2 * std::fma(series * square, s, s);
  return std::fma(static_cast<double>(exponent), kLn2, log_m);
}

}  // namespace attn

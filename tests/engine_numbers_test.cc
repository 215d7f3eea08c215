// Numbers one at a time: 16-bit conversions, exp2, tanh and the logarithm, in plain C++ and on every target.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "attn/dtype.h"
#include "engine_problem.h"
#include "src/arithmetic/scalar.h"
#include "src/kernels/kernels.h"

namespace attn::tests {
namespace {

// What a 16-bit pattern means, by the definition: sign, exponent, fraction.
double meaning(std::uint16_t bits, int fraction_bits) {
  const int exponents = (1 << (15 - fraction_bits)) - 1;
  const int exponent = bits >> fraction_bits & exponents, fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == exponents) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int bias = exponents / 2;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

// The nearest 16-bit number, ties to the even pattern, from the meanings alone.
std::uint16_t nearest(double value, int fraction_bits) {
  if (std::isnan(value)) return fraction_bits == 10 ? 0x7E00 : 0x7FC0;
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity = static_cast<std::uint16_t>(((1 << (15 - fraction_bits)) - 1) << fraction_bits);
  std::uint16_t low = 0, high = infinity;  // meanings ascend with the patterns
  const double magnitude = std::fabs(value);
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (meaning(middle, fraction_bits) <= magnitude ? low : high) = middle;
  }
  // Infinity stands where the next number would be.
  const double above = high == infinity
                           ? 2 * meaning(infinity - 1, fraction_bits) - meaning(infinity - 2, fraction_bits)
                           : meaning(high, fraction_bits);
  if (magnitude >= above) return sign | high;
  const double down = magnitude - meaning(low, fraction_bits), up = above - magnitude;
  if (down == up) return sign | ((low & 1) == 0 ? low : high);
  return sign | (down < up ? low : high);
}

struct Half {
  const char* name;
  int fraction_bits;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
};
constexpr Half kHalves[] = {{"f16", 10, f16_to_float, float_to_f16}, {"bf16", 7, bf16_to_float, float_to_bf16}};

TEST(Halves, AllWidenExactlyAndNarrowBack) {
  for (const Half& half : kHalves) {
    for (int pattern = 0; pattern < 0x10000; ++pattern) {
      const auto bits = static_cast<std::uint16_t>(pattern);
      const float wide = half.widen(bits);
      const double expected = meaning(bits, half.fraction_bits);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide)) << half.name << ' ' << pattern;
        ASSERT_EQ(half.narrow(wide), nearest(expected, half.fraction_bits)) << half.name << ' ' << pattern;
        continue;
      }
      ASSERT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(wide)), std::bit_cast<std::uint64_t>(expected))
          << half.name << ' ' << pattern;
      ASSERT_EQ(half.narrow(wide), bits) << half.name;
    }
  }
}

// Around every 16-bit number and every middle between two: the float itself and its neighbours.
TEST(Halves, RoundToNearestWithTiesToEven) {
  for (const Half& half : kHalves) {
    const auto infinity = static_cast<std::uint16_t>(half.widen(0x7C00) == INFINITY ? 0x7C00 : 0x7F80);
    for (std::uint16_t low = 0; low < infinity; ++low) {
      const double here = meaning(low, half.fraction_bits);
      const double next = low + 1 == infinity ? 2 * here - meaning(low - 1, half.fraction_bits)
                                              : meaning(low + 1, half.fraction_bits);
      for (const double centre : {here, (here + next) / 2, next}) {
        const auto exact = static_cast<float>(centre);
        for (const float f : {std::nextafter(exact, -INFINITY), exact, std::nextafter(exact, INFINITY)}) {
          ASSERT_EQ(half.narrow(f), nearest(f, half.fraction_bits)) << half.name << ' ' << std::hexfloat << f;
          ASSERT_EQ(half.narrow(-f), nearest(-f, half.fraction_bits)) << half.name << ' ' << std::hexfloat << -f;
        }
      }
    }
  }
}

TEST(Halves, OverflowUnderflowAndNan) {
  for (const Half& half : kHalves) {
    const std::uint16_t nan = half.fraction_bits == 10 ? 0x7E00 : 0x7FC0;
    for (const std::uint32_t bits :
         {0x7FC00000U, 0xFFC00000U, 0x7F800001U, 0xFF800001U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
      EXPECT_EQ(half.narrow(std::bit_cast<float>(bits)), nan) << half.name;
    }
    const float all[] = {INFINITY, 3.4028235e38F, 65504.0F,        65519.996F, 65520.0F, 1e-45F,
                         1e-40F,   0x1p-25F,      0x1.000002p-25F, 0x1p-24F,   0x1p-14F, 0.0F};
    for (const float f : all) {
      EXPECT_EQ(half.narrow(f), nearest(f, half.fraction_bits)) << half.name << ' ' << f;
      EXPECT_EQ(half.narrow(-f), nearest(-f, half.fraction_bits)) << half.name << ' ' << -f;
    }
  }
}

std::vector<Isa> simd_targets() {
  std::vector<Isa> isas = available_isas();
  std::erase(isas, Isa::scalar);
  return isas;
}

// Kernels widen while they pack: all patterns as keys of 16 columns, and as values, contiguous and strided.
TEST(Halves, WidenTheSameInEveryKernel) {
  constexpr std::int64_t kRows = 4096, kColumns = 16;
  std::vector<std::uint16_t> halves(2 * kRows * kColumns);
  for (const std::int64_t stride : {1, 2}) {
    for (int i = 0; i < 0x10000; ++i) halves[i * stride] = static_cast<std::uint16_t>(i);
    for (const Isa isa : simd_targets()) {
      for (const auto& [dtype, half] : {std::pair{DType::f16, kHalves[0]}, {DType::bf16, kHalves[1]}}) {
        const SourceRows rows{reinterpret_cast<const std::byte*>(halves.data()), dtype, stride * kColumns, stride};
        std::vector<float> keys(kRows * kColumns), values(kRows * kColumns);
        kernels_for(isa)->f32.pack_keys(rows, kRows, 0, kColumns, keys.data());
        kernels_for(isa)->f32.pack_values(rows, kRows, 0, kColumns, kColumns, values.data());
        for (std::int64_t i = 0; i < 0x10000; ++i) {
          const float expected = half.widen(static_cast<std::uint16_t>(i));
          const std::int64_t key = i / kColumns, column = i % kColumns;
          const float packed_key =
              keys[key / kUnitKeys * kUnitKeys * kColumns + column * kUnitKeys + key % kUnitKeys];
          for (const float actual : {packed_key, values[i]}) {
            const bool both_nan = std::isnan(expected) && std::isnan(actual);
            ASSERT_TRUE(both_nan || std::bit_cast<std::uint32_t>(actual) == std::bit_cast<std::uint32_t>(expected))
                << name_of(isa) << ' ' << half.name << ' ' << i;
          }
        }
      }
    }
  }
}

template <class T>
bool same(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
}

bool has_fma(Isa isa) { return isa != Isa::sse4; }

// Without fused multiply-adds the polynomial rounds more often.
double most_exp2_ulps(Isa isa) { return has_fma(isa) ? 1.0 : 1.25; }

// Distance from the exact value in units of its last place.
template <class T>
double ulps(T actual, long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) /
                             std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits));
}

// Where the integer part rounds to the lowest one the result is +0: half a step above the bottom, 2^−125.5.
template <class T>
bool may_be_zero(T x) {
  return x <= Exp2<T>::kLowest + T(0.5);
}

// One float of [−126, 0] in `step`.
void sweep_exp2(Isa isa, std::uint32_t step, double* worst, std::int64_t* unlike_scalar) {
  const std::uint32_t last = std::bit_cast<std::uint32_t>(-126.0F);
  std::vector<float> x, y;
  for (std::uint64_t bits = 0x80000000U; bits <= last;) {
    x.clear();
    for (; x.size() < 4096 && bits <= last; bits += step)
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    y = x;
    kernels_for(isa)->f32.exp2_each(y.data(), static_cast<std::int64_t>(y.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool is_zero = may_be_zero(x[i]) && std::bit_cast<std::uint32_t>(y[i]) == 0;
      if (!is_zero) *worst = std::max(*worst, ulps(y[i], std::exp2(static_cast<double>(x[i]))));
      if (!same(y[i], exp2_nonpositive(x[i]))) ++*unlike_scalar;
    }
  }
}

TEST(Exp2, IsWithinOneUlpOnEveryTarget) {
  // Every 257th float by default, denormals too; ATTN_TEST_EFFORT=25700 looks at every one.
  const auto step = static_cast<std::uint32_t>(std::max(1, 25700 / effort(100)));
  for (const Isa isa : simd_targets()) {
    double worst = 0;
    std::int64_t unlike_scalar = 0;
    sweep_exp2(isa, step, &worst, &unlike_scalar);
    std::printf("exp2 on %s: %.2f ULP at most, every %u. float\n", name_of(isa), worst, step);
    EXPECT_LE(worst, most_exp2_ulps(isa)) << name_of(isa);
    EXPECT_GT(worst, 0.3) << name_of(isa) << ": too good to be measured right";
    EXPECT_TRUE(unlike_scalar == 0 || !has_fma(isa)) << name_of(isa) << ' ' << unlike_scalar;
  }
}

TEST(Exp2, IsWithinOneUlpInDoublePrecision) {
  for (const Isa isa : simd_targets()) {
    double worst = 0;
    for (double x = 0; x > -1021.5; x -= 0.00713 * 100 / std::min(100, effort(100))) {
      double y = x;
      kernels_for(isa)->f64.exp2_each(&y, 1);
      worst = std::max(worst, ulps(y, std::exp2(static_cast<long double>(x))));
      ASSERT_TRUE(same(y, exp2_nonpositive(x)) || !has_fma(isa)) << name_of(isa) << ' ' << x;
    }
    EXPECT_LE(worst, most_exp2_ulps(isa)) << name_of(isa);
  }
}

template <class T>
void expect_exp2_edges(const KernelSet<T>& kernels, T lowest, const char* name) {
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const T below = std::nextafter(lowest, -infinity);
  const std::pair<T, T> cases[] = {{T(0), T(1)},
                                   {T(-0.0), T(1)},
                                   {T(-1), T(0.5)},
                                   {lowest, T(0)},
                                   {below, T(0)},
                                   {T(-2000), T(0)},
                                   {T(-1e30), T(0)},
                                   {-infinity, T(0)},
                                   {nan, nan},
                                   {-nan, nan},
                                   {std::numeric_limits<T>::lowest(), T(0)}};
  for (const auto& [x, expected] : cases) {
    T y = x;
    kernels.exp2_each(&y, 1);
    EXPECT_TRUE(same(y, expected)) << name << ": 2^" << x << " is " << y;
    EXPECT_TRUE(same(exp2_nonpositive(x), expected)) << "scalar: 2^" << x;
  }
}

TEST(Exp2, IsExactAtZeroAndNothingAtTheBottom) {
  for (const Isa isa : simd_targets()) {
    expect_exp2_edges(kernels_for(isa)->f32, -126.0F, name_of(isa));
    expect_exp2_edges(kernels_for(isa)->f64, -1022.0, name_of(isa));
  }
}

template <class T>
void expect_tanh(Isa isa, double most_ulps) {
  const T nan = std::numeric_limits<T>::quiet_NaN(), infinity = std::numeric_limits<T>::infinity();
  double worst = 0;
  std::vector<T> all{T(0), infinity, nan, T(1e-30), T(100), T(1e30)};
  for (double z = 1e-20; z < 50; z *= 1.0 + 0.0003 * 100 / std::min(100, effort(100)))
    all.push_back(static_cast<T>(z));
  for (const T z : all) {
    for (const T signed_z : {z, -z}) {
      T y = signed_z;
      kernels_for(isa)->of<T>().tanh_each(&y, 1);
      ASSERT_TRUE(same(y, tanh_of(signed_z)) || !has_fma(isa)) << name_of(isa) << ' ' << signed_z;
      const long double exact = std::tanh(static_cast<long double>(signed_z));
      if (std::isnan(z)) {
        ASSERT_TRUE(std::isnan(y));
      } else if (exact == 0) {
        ASSERT_TRUE(same(y, signed_z));
      } else {
        worst = std::max(worst, ulps(y, exact));
        ASSERT_LE(std::fabs(y), T(1));
      }
    }
  }
  EXPECT_LE(worst, most_ulps) << name_of(isa);
}

TEST(Tanh, KeepsItsRelativeAccuracyEverywhere) {
  for (const Isa isa : simd_targets()) {
    expect_tanh<float>(isa, 6);
    expect_tanh<double>(isa, 6);
  }
}

TEST(Logarithm, IsWithinAnUlpOrSo) {
  double worst = 0;
  for (double x = 1e-300; x < 1e300; x *= 1.0137) {
    worst = std::max(worst, ulps(natural_log(x), std::log(static_cast<long double>(x))));
  }
  // Near 1 the logarithm is near 0: its relative accuracy must not go.
  for (double x = 0.5; x < 2; x += 0x1p-13) {
    if (x != 1) worst = std::max(worst, ulps(natural_log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 2.0);
  EXPECT_EQ(natural_log(1), 0);
  EXPECT_EQ(natural_log(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(natural_log(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace attn::tests

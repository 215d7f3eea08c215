// The error bound: f32 arithmetic stays within it on hard inputs, and what is too coarse or wrong does not.
#include "reference/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace attn::reference {
namespace {

struct Case {
  int queries, keys, dim;
  std::vector<float> q, k, v;

  TensorView query() const { return {q.data(), DType::f32, {queries, dim}}; }
  TensorView key() const { return {k.data(), DType::f32, {keys, dim}}; }
  TensorView value() const { return {v.data(), DType::f32, {keys, dim}}; }
};

Case make_case(int queries, int keys, int dim, const std::function<float(int)>& number) {
  Case made{queries, keys, dim, {}, {}, {}};
  int index = 0;
  for (int n = 0; n < queries * dim; ++n) made.q.push_back(number(index++));
  for (int n = 0; n < keys * dim; ++n) made.k.push_back(number(index++));
  for (int n = 0; n < keys * dim; ++n) made.v.push_back(number(index++));
  return made;
}

Case normal_case(int queries, int keys, int dim, float times) {
  std::mt19937 generator(7);
  std::normal_distribution<float> distribution;
  return make_case(queries, keys, dim, [&](int index) {
    return (index < (queries + keys) * dim ? times : 1) * distribution(generator);
  });
}

// Attention in f32, keys in blocks of 256: products rounded by `round` before they are summed.
std::vector<float> in_f32(const Case& c, const std::function<float(float)>& round) {
  const float scale = 1 / std::sqrt(static_cast<float>(c.dim));
  std::vector<float> out;
  for (int i = 0; i < c.queries; ++i) {
    std::vector<float> scores(c.keys, 0.0F);
    for (int j = 0; j < c.keys; ++j) {
      for (int d = 0; d < c.dim; ++d) {
        scores[j] = round(std::fma(c.q[i * c.dim + d] * scale, c.k[j * c.dim + d], scores[j]));
      }
    }
    const float max = *std::max_element(scores.begin(), scores.end());
    for (int column = 0; column < c.dim; ++column) {
      float total = 0, sum = 0;
      for (int first = 0; first < c.keys; first += 256) {
        float block = 0, block_sum = 0;
        for (int j = first; j < std::min(first + 256, c.keys); ++j) {
          const float e = std::exp(scores[j] - max);
          block = std::fma(e, c.v[j * c.dim + column], block);
          block_sum += e;
        }
        total += block;
        sum += block_sum;
      }
      out.push_back(total / sum);
    }
  }
  return out;
}

float exactly(float number) { return number; }

// The largest error as a share of the bound.
double worst_share(const Case& c, const std::vector<float>& actual) {
  const Result expected = attention(c.query(), c.key(), c.value());
  const Bounds bounds = error_bounds(expected, c.query(), c.key(), c.value(), {}, DType::f32, DType::f32);
  double worst = 0;
  for (std::size_t e = 0; e < actual.size(); ++e) {
    worst = std::max(worst, std::fabs(actual[e] - expected.out[e]) / bounds.out[e]);
  }
  return worst;
}

TEST(Bound, HoldsForFloat32) {
  for (const float times : {1.0F, 30.0F, 1000.0F}) {
    for (const int keys : {1, 5, 300, 2500}) {
      const Case c = normal_case(4, keys, 32, times);
      EXPECT_LE(worst_share(c, in_f32(c, exactly)), 1) << "times " << times << ", keys " << keys;
    }
  }
}

TEST(Bound, HoldsWhereEveryRoundingGoesTheSameWay) {
  for (const float number : {0.1F, 0.7F, 1.0F / 3}) {
    const Case c = make_case(1, 2000, 128, [&](int) { return number; });
    EXPECT_LE(worst_share(c, in_f32(c, exactly)), 1) << number;
  }
}

TEST(Bound, IsExceededByScoresInSixteenBits) {
  const Case c = normal_case(4, 300, 32, 1);
  const auto eight_bits = [](float number) {
    int exponent = 0;
    return std::ldexp(std::round(std::ldexp(std::frexp(number, &exponent), 8)), exponent - 8);
  };
  EXPECT_GT(worst_share(c, in_f32(c, eight_bits)), 10);
}

TEST(Bound, IsExceededByAForgottenKey) {
  const Case c = normal_case(4, 300, 32, 1);
  Case shorter = c;
  shorter.keys = 299;
  EXPECT_GT(worst_share(c, in_f32(shorter, exactly)), 10);
}

TEST(Bound, IsNotLoosenedByKeysThatABigNegativeBiasSilences) {
  const Case c = normal_case(2, 8, 4, 1);
  std::vector<float> bias(8, 0.0F);
  AttentionOptions options;
  options.bias = TensorView(bias.data(), DType::f32, {8});
  const auto bound_with = [&](float last) {
    bias[7] = last;
    const Result expected = attention(c.query(), c.key(), c.value(), options);
    return error_bounds(expected, c.query(), c.key(), c.value(), options, DType::f32, DType::f32).out[0];
  };
  EXPECT_LT(bound_with(-1e9F), 1e-4);
  EXPECT_GT(bound_with(-1e9F), 0);
}

TEST(Bound, GrowsWithTheCoarsenessOfTypes) {
  const Case c = normal_case(2, 50, 8, 1);
  const Result expected = attention(c.query(), c.key(), c.value());
  const auto bound = [&](DType compute, DType stored) {
    return error_bounds(expected, c.query(), c.key(), c.value(), {}, compute, stored).out[0];
  };
  EXPECT_LT(bound(DType::f64, DType::f64), 1e-12);
  EXPECT_LT(bound(DType::f64, DType::f64), bound(DType::f32, DType::f32));
  EXPECT_LT(bound(DType::f32, DType::f32), bound(DType::f32, DType::f16));
  EXPECT_LT(bound(DType::f32, DType::f16), bound(DType::f32, DType::bf16));
  EXPECT_GE(bound(DType::f32, DType::f16), std::fabs(expected.out[0]) * 0x1p-11);
}

TEST(Bound, OfTheLseHoldsToo) {
  const Case c = normal_case(1, 500, 16, 3);
  const Result expected = attention(c.query(), c.key(), c.value());
  const Bounds bounds = error_bounds(expected, c.query(), c.key(), c.value(), {}, DType::f32, DType::f32);
  EXPECT_GT(bounds.lse[0], 0);
  EXPECT_LT(bounds.lse[0], 1e-3);
  EXPECT_TRUE(agrees(static_cast<float>(expected.lse[0]), expected.lse[0], bounds.lse[0]));
}

TEST(Bound, ToleratesNothingWhereTheReferenceIsNotFinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double q[] = {1}, k[] = {kNan}, v[] = {1};
  const TensorView query{q, DType::f64, {1, 1}}, key{k, DType::f64, {1, 1}}, value{v, DType::f64, {1, 1}};
  const Result expected = attention(query, key, value);
  const Bounds bounds = error_bounds(expected, query, key, value, {}, DType::f64, DType::f64);
  EXPECT_EQ(bounds.out[0], 0);
  EXPECT_TRUE(agrees(kNan, expected.out[0], bounds.out[0]));
  EXPECT_FALSE(agrees(0, expected.out[0], bounds.out[0]));
  EXPECT_TRUE(agrees(kInfinity, kInfinity, 0));
  EXPECT_FALSE(agrees(-kInfinity, kInfinity, 1));
  EXPECT_FALSE(agrees(kNan, 1, 1));
  EXPECT_FALSE(agrees(1, kNan, 1));
}

}  // namespace
}  // namespace attn::reference

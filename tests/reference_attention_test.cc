// The judge against a formula written a second time, over dtypes, strides and grouped heads; and its edges.
#include "reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace attn::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> normal(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution;
  std::vector<double> numbers(count);
  for (double& number : numbers) number = distribution(generator);
  return numbers;
}

// Σ_j e^(s_j)·v_j / Σ_j e^(s_j) over one head's rows, by long double, from contiguous f64.
std::vector<double> naive(const double* q, const double* k, const double* v, int queries, int keys, int dim) {
  std::vector<double> out;
  for (int i = 0; i < queries; ++i) {
    for (int c = 0; c < dim; ++c) {
      long double numerator = 0, denominator = 0;
      for (int j = 0; j < keys; ++j) {
        long double s = 0;
        for (int d = 0; d < dim; ++d) s += static_cast<long double>(q[i * dim + d]) * k[j * dim + d];
        const long double e = std::exp(s / std::sqrt(static_cast<long double>(dim)));
        numerator += e * v[j * dim + c];
        denominator += e;
      }
      out.push_back(static_cast<double>(numerator / denominator));
    }
  }
  return out;
}

TEST(Attention, EqualsTheFormulaForGroupedHeads) {
  const int batch = 2, heads = 4, kv_heads = 2, queries = 3, keys = 7, dim = 5;
  const auto q = normal(batch * heads * queries * dim, 1);
  const auto k = normal(batch * kv_heads * keys * dim, 2), v = normal(batch * kv_heads * keys * dim, 3);
  const Result result = attention({q.data(), DType::f64, {batch, heads, queries, dim}},
                                  {k.data(), DType::f64, {batch, kv_heads, keys, dim}},
                                  {v.data(), DType::f64, {batch, kv_heads, keys, dim}});
  EXPECT_EQ(result.batch, batch);
  EXPECT_EQ(result.heads, heads);
  EXPECT_EQ(result.queries, queries);
  EXPECT_EQ(result.value_dim, dim);
  ASSERT_EQ(result.out.size(), q.size());
  for (int b = 0; b < batch; ++b) {
    for (int h = 0; h < heads; ++h) {
      const int q_at = (b * heads + h) * queries * dim, kv_at = (b * kv_heads + h / 2) * keys * dim;
      const auto expected = naive(&q[q_at], &k[kv_at], &v[kv_at], queries, keys, dim);
      for (std::size_t e = 0; e < expected.size(); ++e) EXPECT_NEAR(result.out[q_at + e], expected[e], 1e-14);
    }
  }
}

TEST(Attention, ReadsAnyStride) {
  // The same numbers stored backwards and column by column; values broadcast from one row.
  const int queries = 3, keys = 4, dim = 2;
  const auto q = normal(queries * dim, 4), k = normal(keys * dim, 5), v = normal(dim, 6);
  std::vector<double> backwards(q.rbegin(), q.rend()), transposed(k.size());
  for (int j = 0; j < keys; ++j)
    for (int d = 0; d < dim; ++d) transposed[d * keys + j] = k[j * dim + d];
  const TensorView value{v.data(), DType::f64, {keys, dim}, {0, 1}};
  const Result plain =
      attention({q.data(), DType::f64, {queries, dim}}, {k.data(), DType::f64, {keys, dim}}, value);
  const Result strided = attention({&backwards.back(), DType::f64, {queries, dim}, {-dim, -1}},
                                   {transposed.data(), DType::f64, {keys, dim}, {1, keys}}, value);
  EXPECT_EQ(plain.out, strided.out);
  EXPECT_EQ(plain.lse, strided.lse);
  EXPECT_NEAR(plain.out[0], v[0], 1e-15);
}

// What one key's value reads as, when stored as these bits.
template <class Bits>
double read_back(DType dtype, Bits bits) {
  unsigned char unaligned[sizeof(Bits) + 1];
  std::memcpy(unaligned + 1, &bits, sizeof(bits));
  const double zero = 0;
  const TensorView key{&zero, DType::f64, {1, 1}};
  return attention(key, key, {unaligned + 1, dtype, {1, 1}}).out[0];
}

TEST(Attention, ReadsSixteenBitNumbersExactly) {
  EXPECT_EQ(read_back<std::uint16_t>(DType::f16, 0x3C00), 1.0);
  EXPECT_EQ(read_back<std::uint16_t>(DType::f16, 0xC248), -3.140625);
  EXPECT_EQ(read_back<std::uint16_t>(DType::f16, 0x7BFF), 65504.0);
  EXPECT_EQ(read_back<std::uint16_t>(DType::f16, 0x0001), 0x1p-24);
  EXPECT_EQ(read_back<std::uint16_t>(DType::f16, 0x0400), 0x1p-14);
  EXPECT_EQ(read_back<std::uint16_t>(DType::f16, 0xFC00), -kInfinity);
  EXPECT_TRUE(std::isnan(read_back<std::uint16_t>(DType::f16, 0x7C01)));
  EXPECT_EQ(read_back<std::uint16_t>(DType::bf16, 0x3F80), 1.0);
  EXPECT_EQ(read_back<std::uint16_t>(DType::bf16, 0xC049), -3.140625);
  EXPECT_EQ(read_back<std::uint16_t>(DType::bf16, 0x0001), 0x1p-133);
  EXPECT_EQ(read_back<std::uint16_t>(DType::bf16, 0x7F80), kInfinity);
  EXPECT_TRUE(std::isnan(read_back<std::uint16_t>(DType::bf16, 0xFFC1)));
  EXPECT_EQ(read_back<float>(DType::f32, -0.1F), static_cast<double>(-0.1F));
}

// One query over three keys whose scores are `scores` and whose values are (v, 1).
Result one_row(std::vector<double> scores, std::vector<double> values, AttentionOptions options = {}) {
  const double q[] = {1};
  const std::int64_t keys = static_cast<std::int64_t>(scores.size());
  return attention({q, DType::f64, {1, 1}}, {scores.data(), DType::f64, {keys, 1}},
                   {values.data(), DType::f64, {keys, 1}}, options, true);
}

TEST(Edges, RowsThatSeeNothing) {
  const Result none = one_row({}, {});
  EXPECT_EQ(none.out, std::vector<double>{0});
  EXPECT_EQ(none.lse, std::vector<double>{-kInfinity});
  const double sink[] = {1.5};
  AttentionOptions options;
  options.sinks = TensorView(sink, DType::f64, {1});
  const Result with_sink = one_row({}, {}, options);
  EXPECT_EQ(with_sink.out, std::vector<double>{0});
  EXPECT_EQ(with_sink.lse, std::vector<double>{1.5});
  const std::int64_t no_queries[] = {0};
  options.query_lengths = no_queries;
  const Result padding = one_row({1, 2}, {3, 4}, options);
  EXPECT_EQ(padding.out, std::vector<double>{0});
  EXPECT_EQ(padding.lse, std::vector<double>{-kInfinity});
  EXPECT_EQ(padding.weights, (std::vector<double>{0, 0}));
}

TEST(Edges, HiddenKeysNeverReachTheResult) {
  const bool mask[] = {true, false, true, false};
  AttentionOptions options;
  options.mask = TensorView(mask, DType::boolean, {4});
  const Result clean = one_row({0, 0, 1, 0}, {1, 0, 2, 0}, options);
  const Result dirty = one_row({0, kNan, 1, kInfinity}, {1, kNan, 2, -kInfinity}, options);
  EXPECT_EQ(clean.out, dirty.out);
  EXPECT_EQ(clean.lse, dirty.lse);
  EXPECT_EQ(clean.weights, dirty.weights);
  EXPECT_TRUE(std::isfinite(clean.out[0]));
}

TEST(Edges, VisibleNanAndInfinity) {
  const Result nan = one_row({0, kNan, 1}, {1, 2, 3});
  EXPECT_TRUE(std::isnan(nan.out[0]));
  EXPECT_TRUE(std::isnan(nan.lse[0]));
  EXPECT_TRUE(std::isnan(one_row({kNan}, {1}).out[0]));
  // A score of −∞ weighs nothing, but its value still counts: 0 · NaN.
  EXPECT_EQ(one_row({0, -kInfinity}, {1, 2}).out[0], 1);
  EXPECT_TRUE(std::isnan(one_row({0, -kInfinity}, {1, kNan}).out[0]));
  const Result all_low = one_row({-kInfinity, -kInfinity}, {1, kNan});
  EXPECT_EQ(all_low.out[0], 0);
  EXPECT_EQ(all_low.lse[0], -kInfinity);
  EXPECT_EQ(all_low.weights, (std::vector<double>{0, 0}));
  EXPECT_TRUE(std::isnan(one_row({0, kInfinity}, {1, 2}).out[0]));
  EXPECT_EQ(one_row({0, 1}, {1, kInfinity}).out[0], kInfinity);
}

TEST(Edges, OneKeyIsReturnedAsItIs) {
  for (const double score : {0.0, -1e300, 700.0, 1e300}) EXPECT_EQ(one_row({score}, {0.1}).out[0], 0.1);
  EXPECT_FALSE(std::signbit(one_row({3}, {-0.0}).out[0]));
}

TEST(Edges, LargeScoresDoNotOverflow) {
  const Result result = one_row({1000, 1001}, {0, 1});
  EXPECT_NEAR(result.out[0], 1 / (1 + std::exp(-1.0)), 1e-15);
  EXPECT_NEAR(result.lse[0], 1001 + std::log1p(std::exp(-1.0)), 1e-12);
}

}  // namespace
}  // namespace attn::reference

// Rotary positions: what they mean, the numbers of other implementations, and wrong use.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "attn/rope.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

Tensor rotated(const Tensor& x, std::span<const std::int64_t> positions, const RopeOptions& options) {
  Tensor out(x.dtype(), x.shape());
  EXPECT_EQ(rotate(x.view(), out.output(), positions, options).message(), "");
  return out;
}

double product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.get(i) * b.get(i);
  return sum;
}

// In f64, from the definition: pair (x, y) turns by position · base^(−2i/R).
Tensor by_definition(const Tensor& x, const RopeOptions& o, std::span<const std::int64_t> positions) {
  Tensor out(DType::f32, x.shape());
  const auto& s = x.shape();
  const std::int64_t rotary = o.rotary_dim == 0 ? s[3] : o.rotary_dim;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::int64_t c = i % s[3], row = i / s[3] % s[2], b = i / s[3] / s[2] / s[1], start = i - c;
    if (c >= rotary) {
      out.set(i, x.get(i));
      continue;
    }
    const bool adjacent = o.layout == RopeLayout::adjacent_pairs;
    const std::int64_t pair = adjacent ? c / 2 : c % (rotary / 2);
    const bool second = adjacent ? c % 2 == 1 : c >= rotary / 2;
    const std::int64_t other = adjacent ? c + (second ? -1 : 1) : c + (second ? -1 : 1) * rotary / 2;
    const std::size_t place = positions.size() == static_cast<std::size_t>(s[2]) ? row : b * s[2] + row;
    const double angle = static_cast<double>(positions[place]) *
                         std::pow(o.base, -2.0 * static_cast<double>(pair) / static_cast<double>(rotary));
    const double turned = second ? x.get(start + other) * std::sin(angle) : -x.get(start + other) * std::sin(angle);
    out.set(i, x.get(i) * std::cos(angle) + turned);
  }
  return out;
}

TEST(Rope, TurnsEachPairByItsAngle) {
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::adjacent_pairs}) {
    for (const std::int64_t rotary : {0, 2, 6, 16}) {
      const RopeOptions options{.layout = layout, .rotary_dim = rotary, .base = 500};
      const Tensor x = normal_tensor(DType::f32, {2, 3, 4, 16}, 1);
      const std::int64_t shared[] = {5, 0, 1000, 77}, each[] = {1, 2, 3, 4, 50, 60, 70, 8000};
      for (const std::span<const std::int64_t> positions :
           {std::span<const std::int64_t>(shared), std::span<const std::int64_t>(each)}) {
        const Tensor expected = by_definition(x, options, positions), actual = rotated(x, positions, options);
        for (std::int64_t i = 0; i < x.size(); ++i) ASSERT_NEAR(actual.get(i), expected.get(i), 3e-7 * 8) << i;
      }
    }
  }
}

TEST(Rope, MakesProductsDependOnDistancesAlone) {
  const Tensor q = normal_tensor(DType::f32, {1, 1, 1, 64}, 1), k = normal_tensor(DType::f32, {1, 1, 1, 64}, 2);
  for (const RopeLayout layout : {RopeLayout::half_split, RopeLayout::adjacent_pairs}) {
    const RopeOptions options{.layout = layout};
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return product(rotated(q, {{i}}, options), rotated(k, {{j}}, options));
    };
    EXPECT_NEAR(at(7, 3), at(1007, 1003), 1e-3);
    EXPECT_GT(std::fabs(at(7, 3) - at(7, 2)), 1e-2);
  }
}

TEST(Rope, OfPositionZeroAndFarDimsChangesNothing) {
  const Tensor x = normal_tensor(DType::f32, {1, 2, 3, 10}, 4);
  const std::int64_t zeros[] = {0, 0, 0};
  EXPECT_TRUE(same_bits(rotated(x, zeros, {}), x));
  const Tensor some = rotated(x, {}, {.rotary_dim = 4});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (i % 10 >= 4) {
      EXPECT_EQ(some.bits(i), x.bits(i));
    }
  }
}

TEST(Rope, InPlaceInEveryLayoutAndDtypeIsTheSame) {
  const Tensor x = normal_tensor(DType::f32, {2, 3, 5, 12}, 4);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor expected = rotated(x.in(dtype), {}, {});
    for (const Layout layout : kLayouts) {
      Tensor in_place = x.in(dtype).in(layout);
      ASSERT_EQ(rotate(in_place.view(), in_place.output()).message(), "");
      EXPECT_TRUE(same_bits(in_place, expected));
      EXPECT_TRUE(in_place.gaps_untouched());
    }
  }
}

void expect_frequencies(const RopeOptions& options, double attention_factor, const std::vector<double>& expected) {
  std::vector<double> frequencies;
  ASSERT_EQ(rope_frequencies(options, 32, &frequencies).message(), "");
  ASSERT_EQ(frequencies.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(frequencies[i], expected[i], 1e-6 * expected[i]) << i;
  RopeTable table;
  ASSERT_EQ(rope_table(options, 32, {{0}}, &table).message(), "");
  for (const float cos : table.cos) EXPECT_NEAR(cos, attention_factor, 1e-7);
}

// Printed by transformers 5.24 (ROPE_INIT_FUNCTIONS, head_dim 32, rope_theta 10000).
TEST(Rope, ScalesAsTransformersDoes) {
  expect_frequencies({.scaling = RopeScaling::linear, .factor = 4}, 1,
                     {0.25, 0.140585333, 0.079056941, 0.0444569848, 0.0250000004, 0.0140585322, 0.00790569466,
                      0.00444569858, 0.00249999994, 0.00140585331, 0.000790569466, 0.000444569858, 0.000250000012,
                      0.000140585325, 7.90569466e-05, 4.44569851e-05});
  expect_frequencies({.scaling = RopeScaling::yarn, .factor = 4, .original_length = 2048}, 1.13862944,
                     {1, 0.562341332, 0.316227764, 0.177827939, 0.100000001, 0.0502090417, 0.02484647, 0.0120668961,
                      0.00571428565, 0.0026108704, 0.00112938497, 0.000444569858, 0.000250000012, 0.000140585325,
                      7.90569466e-05, 4.44569851e-05});
  expect_frequencies(
      {.scaling = RopeScaling::yarn, .factor = 16, .original_length = 4096, .beta_fast = 16, .beta_slow = 2},
      1.27725887,
      {1, 0.562341332, 0.316227764, 0.177827939, 0.100000001, 0.0562341288, 0.0316227786, 0.0144485207,
       0.00625000009, 0.00246024318, 0.000790569407, 0.000111142464, 6.2500003e-05, 3.51463314e-05, 1.97642366e-05,
       1.11142463e-05});
}

// The slowest pair turns `factor` times slower, the fastest as before.
TEST(Rope, ScaledByNtkStretchesLowFrequencies) {
  std::vector<double> plain, scaled;
  ASSERT_TRUE(rope_frequencies({}, 64, &plain).ok());
  ASSERT_TRUE(rope_frequencies({.scaling = RopeScaling::ntk, .factor = 8}, 64, &scaled).ok());
  EXPECT_EQ(scaled.front(), plain.front());
  EXPECT_NEAR(scaled.back(), plain.back() / 8, 1e-12);
}

TEST(Rope, ByAGivenTableIsTheSame) {
  const Tensor x = normal_tensor(DType::f32, {2, 3, 4, 16}, 1);
  const RopeOptions options{.layout = RopeLayout::adjacent_pairs, .rotary_dim = 6};
  const std::int64_t all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, positions[] = {9, 0, 3, 4};
  RopeTable table;
  ASSERT_TRUE(rope_table(options, 16, all, &table).ok());
  const TensorView cos(table.cos.data(), DType::f32, {10, 3}), sin(table.sin.data(), DType::f32, {10, 3});
  Tensor out(DType::f32, x.shape());
  ASSERT_EQ(rotate_by_table(x.view(), out.output(), cos, sin, positions, options.layout).message(), "");
  EXPECT_TRUE(same_bits(out, rotated(x, positions, options)));
  ASSERT_EQ(rotate_by_table(x.view(), out.output(), cos, sin, {}, options.layout).message(), "");
  EXPECT_TRUE(same_bits(out, rotated(x, {}, options)));

  // A row a query: [B, N, R/2], and as a table.
  const std::int64_t each[] = {9, 0, 3, 4, 1, 1, 2, 70};
  RopeTable of_each;
  ASSERT_TRUE(rope_table(options, 16, each, &of_each).ok());
  const TensorView each_cos(of_each.cos.data(), DType::f32, {2, 4, 3}),
      each_sin(of_each.sin.data(), DType::f32, {2, 4, 3});
  ASSERT_EQ(rotate_by_table(x.view(), out.output(), each_cos, each_sin, {}, options.layout).message(), "");
  EXPECT_TRUE(same_bits(out, rotated(x, each, options)));
  ASSERT_EQ(rotate_by_table(x.view(), out.output(), of_each, options.layout).message(), "");
  EXPECT_TRUE(same_bits(out, rotated(x, each, options)));
}

TEST(Rope, OfManyRowsOnManyThreadsIsTheSame) {
  const Tensor x = normal_tensor(DType::f32, {2, 8, 900, 64}, 1);
  const auto pool = make_thread_pool(3, 0);
  Tensor out(DType::f32, x.shape());
  ASSERT_EQ(rotate(x.view(), out.output(), {}, {}, pool.get()).message(), "");
  Tensor alone(DType::f32, x.shape());
  ASSERT_EQ(rotate(x.view(), alone.output(), {}, {}, &inline_executor()).message(), "");
  EXPECT_TRUE(same_bits(out, alone));
}

TEST(Rope, RefusesWhatMakesNoSense) {
  Tensor x = normal_tensor(DType::f32, {2, 3, 4, 16}, 1), out(DType::f32, {2, 3, 4, 16});
  const auto message = [&](const RopeOptions& options, std::span<const std::int64_t> positions = {}) {
    return rotate(x.view(), out.output(), positions, options).message();
  };
  EXPECT_EQ(message({.rotary_dim = 5}),
            "rotary_dim: 5, but rows have 16 numbers; it is even, at least 2 and no more than they have");
  EXPECT_NE(message({.rotary_dim = 18}), "");
  EXPECT_EQ(message({.base = 1}), "base: 1; it is above 1");
  EXPECT_EQ(message({.factor = 2}), "factor: 2 without a scaling; choose linear, ntk or yarn");
  EXPECT_EQ(message({.scaling = RopeScaling::linear, .factor = 0.5}), "factor: 0.5; it is at least 1");
  EXPECT_EQ(message({.scaling = RopeScaling::yarn, .factor = 2}),
            "original_length: 0; yarn needs the context length of the training");
  const std::int64_t three[] = {1, 2, 3};
  EXPECT_EQ(message({}, three),
            "positions: 3 numbers for 2 sequences of 4 rows; give one a row, for all sequences or for each");
  const RopeTable table{4, 8, std::vector<float>(32), std::vector<float>(32)};
  const TensorView angles(table.cos.data(), DType::f32, {4, 8});
  const std::int64_t far[] = {0, 1, 2, 4};
  EXPECT_EQ(rotate_by_table(x.view(), out.output(), angles, angles, far).message(),
            "positions: 4; the table has positions 0 to 3");
  const TensorView wide_angles(table.cos.data(), DType::f32, {3, 9});
  EXPECT_EQ(rotate_by_table(x.view(), out.output(), wide_angles, wide_angles).message(),
            "cos: 9 columns, one for each pair that turns, but rows have 16 numbers; give 1 to 8");
  EXPECT_EQ(rotate_by_table(x.view(), out.output(), RopeTable{3, 8, {}, {}}, RopeLayout::half_split).message(),
            "table: 3 positions for 2 sequences of 4 rows; give one a row, for all sequences or for each");
  EXPECT_NE(rotate_by_table(x.view(), out.output(), RopeTable{4, 8, {}, {}}, RopeLayout::half_split).message(), "");
  EXPECT_EQ(message({.original_length = 5}),
            "original_length: given, but only yarn uses it; set scaling to yarn, or leave it out");
  const float nothing = 0;
  const TensorView huge(&nothing, DType::f32, {1, 0, std::int64_t{1} << 50, 4});
  const OutputView huge_out(nullptr, DType::f32, {1, 0, std::int64_t{1} << 50, 4});
  EXPECT_EQ(rotate(huge, huge_out).message(), "");
  const TensorView wide_row(&nothing, DType::f32, {1, std::int64_t{1} << 58}, {0, 0});
  EXPECT_NE(rotate(wide_row, OutputView(nullptr, DType::f32, {0, 0})).message(), "");
  const Tensor wide = normal_tensor(DType::f64, {2, 3, 4, 16}, 1);
  EXPECT_EQ(rotate(wide.view(), out.output()).message(), "x: dtype f64; f32, f16 or bf16 is needed");
  OutputView shifted = x.output();
  shifted.shape[2] = 3;
  TensorView source = shifted;
  shifted.data = static_cast<std::byte*>(shifted.data) + 64;
  EXPECT_EQ(rotate(source, shifted).message(), "out: shares memory with x; an output needs memory of its own");
}

}  // namespace
}  // namespace attn::tests

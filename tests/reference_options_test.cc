// Every option changes the result, and in the way that a small case shows by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "reference/reference.h"

namespace attn::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scores are all 0: the keys with a weight are the visible ones.
class Visible : public testing::Test {
 protected:
  static constexpr std::int64_t kKeys = 5;

  // What each query saw: "11000" for keys 0 and 1.
  std::vector<std::string> seen(std::int64_t queries, const AttentionOptions& options) {
    const std::vector<double> q(queries, 0.0), k(kKeys, 1.0), v(kKeys, 1.0);
    const Result result =
        attention({q.data(), DType::f64, {1, 1, queries, 1}}, {k.data(), DType::f64, {1, 1, kKeys, 1}},
                  {v.data(), DType::f64, {1, 1, kKeys, 1}}, options, true);
    std::vector<std::string> rows(queries);
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < kKeys; ++j) rows[i] += result.weights[i * kKeys + j] > 0 ? '1' : '0';
    }
    return rows;
  }
};

using Rows = std::vector<std::string>;

TEST_F(Visible, CausalCountsFromTheAlignment) {
  AttentionOptions options;
  options.causal = true;
  EXPECT_EQ(seen(5, options), (Rows{"10000", "11000", "11100", "11110", "11111"}));
  options.alignment = Alignment::top_left;
  EXPECT_EQ(seen(2, options), (Rows{"10000", "11000"}));
  options.alignment = Alignment::bottom_right;
  EXPECT_EQ(seen(2, options), (Rows{"11110", "11111"}));
  options.alignment = Alignment::offset;
  options.position_offset = 1;
  EXPECT_EQ(seen(2, options), (Rows{"11000", "11100"}));
  options.position_offset = -1;
  EXPECT_EQ(seen(2, options), (Rows{"00000", "10000"}));
  const std::int64_t offsets[] = {3};
  options.position_offsets = offsets;
  EXPECT_EQ(seen(2, options), (Rows{"11110", "11111"}));
}

TEST_F(Visible, WindowsReachLeftAndRightOfThePosition) {
  AttentionOptions options;
  options.window_left = 1;
  EXPECT_EQ(seen(5, options), (Rows{"11111", "11111", "01111", "00111", "00011"}));
  options.window_right = 0;
  EXPECT_EQ(seen(5, options), (Rows{"10000", "11000", "01100", "00110", "00011"}));
  options.window_left.reset();
  options.window_right = 1;
  EXPECT_EQ(seen(5, options), (Rows{"11000", "11100", "11110", "11111", "11111"}));
  options.window_left = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(seen(5, options), (Rows{"11000", "11100", "11110", "11111", "11111"}));
}

TEST_F(Visible, SinkTokensEscapeTheWindowButNotCausality) {
  AttentionOptions options;
  options.causal = true;
  options.window_left = 0;
  options.sink_tokens = 2;
  EXPECT_EQ(seen(5, options), (Rows{"10000", "11000", "11100", "11010", "11001"}));
}

TEST_F(Visible, LengthsHideWhatLiesBehindThem) {
  AttentionOptions options;
  const std::int64_t keys[] = {3}, queries[] = {2};
  options.key_lengths = keys;
  options.query_lengths = queries;
  EXPECT_EQ(seen(3, options), (Rows{"11100", "11100", "00000"}));
  options.causal = true;
  options.alignment = Alignment::bottom_right;
  EXPECT_EQ(seen(3, options), (Rows{"11000", "11100", "00000"}));
}

TEST_F(Visible, MasksAndInfiniteBiasesHide) {
  AttentionOptions options;
  const bool mask[] = {true, false, true, false, true};
  options.mask = TensorView(mask, DType::boolean, {1, 5});
  EXPECT_EQ(seen(2, options), (Rows{"10101", "10101"}));
  const float bias[] = {0, 0, float(-kInfinity), 0, 0, float(-kInfinity), 0, 0, 0, 0};
  options.bias = TensorView(bias, DType::f32, {2, 5});
  EXPECT_EQ(seen(2, options), (Rows{"10001", "00101"}));
}

TEST_F(Visible, KeysMayStartFurtherOn) {
  AttentionOptions options;
  options.causal = true;
  options.alignment = Alignment::offset;
  options.position_offset = 101;
  options.key_offset = 100;
  EXPECT_EQ(seen(2, options), (Rows{"11000", "11100"}));
  options.sink_tokens = 101;
  options.window_left = 0;
  EXPECT_EQ(seen(2, options), (Rows{"11000", "10100"}));
}

// One query, two keys with products 1 and 3 (Dk = 1, hence scale 1): weights are e^a / (e^a + e^b).
double first_weight(const AttentionOptions& options, double* lse = nullptr) {
  const double q[] = {1}, k[] = {1, 3}, v[] = {0, 0};
  const Result result =
      attention({q, DType::f64, {1, 1}}, {k, DType::f64, {2, 1}}, {v, DType::f64, {2, 1}}, options, true);
  if (lse != nullptr) *lse = result.lse[0];
  return result.weights[0];
}

double first_of(double a, double b) { return 1 / (1 + std::exp(b - a)); }

TEST(Scores, AreScaledCappedAndBiasedInThisOrder) {
  AttentionOptions options;
  options.alignment = Alignment::top_left;
  EXPECT_NEAR(first_weight(options), first_of(1, 3), 1e-15);
  options.scale = -0.5;
  EXPECT_NEAR(first_weight(options), first_of(-0.5, -1.5), 1e-15);
  options.softcap = 0.7;
  const double a = 0.7 * std::tanh(-0.5 / 0.7), b = 0.7 * std::tanh(-1.5 / 0.7);
  EXPECT_NEAR(first_weight(options), first_of(a, b), 1e-15);
  const double bias[] = {0.25, -4};
  options.bias = TensorView(bias, DType::f64, {2});
  EXPECT_NEAR(first_weight(options), first_of(a + 0.25, b - 4), 1e-15);
  const double slopes[] = {2};
  options.alibi = TensorView(slopes, DType::f64, {1});
  EXPECT_NEAR(first_weight(options), first_of(a + 0.25, b - 4 - 2), 1e-15);
  options.alignment = Alignment::offset;
  options.position_offset = 3;
  EXPECT_NEAR(first_weight(options), first_of(a + 0.25 - 6, b - 4 - 4), 1e-15);
}

TEST(Scores, ASinkTakesPartInTheSoftmaxWithoutAValue) {
  AttentionOptions options;
  const double sinks[] = {2};
  options.sinks = TensorView(sinks, DType::f64, {1});
  double lse = 0;
  EXPECT_NEAR(first_weight(options, &lse), std::exp(1) / (std::exp(1) + std::exp(3) + std::exp(2)), 1e-15);
  EXPECT_NEAR(lse, std::log(std::exp(1) + std::exp(3) + std::exp(2)), 1e-14);
}

TEST(Packed, SequencesKeepToThemselves) {
  // Two sequences of 1 and 2 queries, 2 and 1 keys; a fourth query row belongs to none.
  const double q[] = {0, 0, 0, 0}, k[] = {0, 0, 0}, v[] = {2, 4, 7};
  const std::int64_t query_starts[] = {0, 1, 3}, key_starts[] = {0, 2, 3};
  AttentionOptions options;
  options.query_starts = query_starts;
  options.key_starts = key_starts;
  const TensorView query{q, DType::f64, {1, 1, 4, 1}}, key{k, DType::f64, {1, 1, 3, 1}},
      value{v, DType::f64, {1, 1, 3, 1}};
  const Result result = attention(query, key, value, options, true);
  EXPECT_EQ(result.out, (std::vector<double>{3, 7, 7, 0}));
  EXPECT_EQ(result.keys, 2);
  EXPECT_EQ(result.weights, (std::vector<double>{0.5, 0.5, 1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(result.lse, (std::vector<double>{std::log(2.0), 0, 0, -kInfinity}));

  // Positions, masks and alignment count within each sequence.
  options.causal = true;
  options.alignment = Alignment::bottom_right;
  EXPECT_EQ(attention(query, key, value, options).out, (std::vector<double>{3, 0, 7, 0}));
  const bool mask[] = {true, false, true, true, true, true, false, true};  // [2, 1, 2, 2]
  options.mask = TensorView(mask, DType::boolean, {2, 1, 2, 2});
  EXPECT_EQ(attention(query, key, value, options).out, (std::vector<double>{2, 0, 0, 0}));
}

}  // namespace
}  // namespace attn::reference

// The worked example to the last digit, and its tiles, heads and replacements.
#include "reference/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/reference.h"

namespace attn::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Problem example() {
  Problem problem;
  problem.tokens = {"order", "4471", "shipped"};
  problem.x = {{1, 0, 1, 0}, {0, 1, 0, 1}, {1, 1, 0, 0}};
  problem.wq = {{1, 0}, {0, 1}, {1, 1}, {0, 0}};
  problem.wk = {{1, 0}, {0, 0}, {1, 1}, {0, 1}};
  problem.wv = {{1, 0}, {0, 1}, {2, 0}, {0, 3}};
  problem.options.causal = true;
  return problem;
}

Trace work(const Problem& problem) {
  Trace worked;
  const Status status = trace(problem, &worked);
  EXPECT_TRUE(status.ok()) << status.message();
  return worked;
}

void expect_near(const Matrix& actual, const Matrix& expected, double tolerance = 1e-15) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r) {
    ASSERT_EQ(actual[r].size(), expected[r].size());
    for (std::size_t c = 0; c < expected[r].size(); ++c) {
      if (actual[r][c] == expected[r][c]) continue;
      EXPECT_NEAR(actual[r][c], expected[r][c], tolerance) << r << ", " << c;
    }
  }
}

TEST(WorkedExample, EveryNumber) {
  const Trace worked = work(example());
  EXPECT_EQ(worked.q, (Matrix{{2, 1}, {0, 1}, {1, 1}}));
  EXPECT_EQ(worked.k, (Matrix{{2, 1}, {0, 1}, {1, 0}}));
  EXPECT_EQ(worked.v, (Matrix{{3, 0}, {0, 4}, {1, 1}}));
  EXPECT_DOUBLE_EQ(worked.scale, 1 / std::sqrt(2.0));
  const HeadTrace& head = worked.heads.at(0);
  EXPECT_EQ(head.scores, (Matrix{{5, 1, 2}, {1, 1, 0}, {3, 1, 1}}));
  const double root = std::sqrt(2.0);
  expect_near(head.scaled,
              {{5 / root, 1 / root, 2 / root}, {1 / root, 1 / root, 0}, {3 / root, 1 / root, 1 / root}});
  expect_near(
      head.masked,
      {{5 / root, -kInfinity, -kInfinity}, {1 / root, 1 / root, -kInfinity}, {3 / root, 1 / root, 1 / root}});
  const double aside = 0.16357910081201152;
  expect_near(head.weights, {{1, 0, 0}, {0.5, 0.5, 0}, {0.672841798375977, aside, aside}});
  expect_near(worked.out, {{3, 0}, {1.5, 2}, {2.1821044959399427, 0.8178955040600576}});
  EXPECT_TRUE(head.softcapped.empty());
  EXPECT_TRUE(head.biased.empty());
}

TEST(WorkedExample, WhatIf) {
  Problem other_key = example();
  other_key.replaced = {{'k', 1, {2, 0}}};
  expect_near({work(other_key).heads[0].weights[1]}, {{0.6697615493266569, 0.3302384506733431, 0}});

  Problem open = example();
  open.options.causal = false;
  expect_near(work(open).heads[0].weights, {{0.8481915308314308, 0.050132993657320254, 0.10167547551124892},
                                            {0.4011120926797859, 0.4011120926797859, 0.1977758146404282},
                                            {0.672841798375977, 0.16357910081201152, 0.16357910081201152}});

  Problem unscaled = example();
  unscaled.options.scale = 1;
  expect_near({work(unscaled).heads[0].weights[2]},
              {{0.7869860421615984, 0.10650697891920073, 0.10650697891920073}});
}

TEST(Tiles, OfEveryHeightEndAtTheSameOutput) {
  for (std::int64_t tile = 1; tile <= 4; ++tile) {
    Problem problem = example();
    problem.tile = tile;
    const Trace worked = work(problem);
    const HeadTrace& head = worked.heads[0];
    ASSERT_EQ(head.tiles.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const Tile& last = head.tiles[i].back();
      EXPECT_NEAR(last.max + std::log(last.sum), head.lse[i], 1e-15);
      for (std::size_t c = 0; c < 2; ++c) EXPECT_NEAR(last.out[c] / last.sum, head.out[i][c], 1e-15);
      EXPECT_EQ(head.tiles[i].size(), (i + tile) / tile) << "tiles that are all hidden are left out";
      EXPECT_EQ(head.tiles[i].front().rescale, 0);
    }
  }
}

TEST(Tiles, RescaleWhenTheMaximumGrows) {
  Problem problem;
  problem.tokens = {"a", "b"};
  problem.q = {{1}, {1}};
  problem.k = {{1}, {3}};
  problem.v = {{10}, {20}};
  problem.tile = 1;
  const std::vector<Tile> tiles = work(problem).heads[0].tiles[0];
  ASSERT_EQ(tiles.size(), 2U);
  EXPECT_EQ(tiles[0].max, 1);
  EXPECT_EQ(tiles[0].sum, 1);
  EXPECT_EQ(tiles[1].max, 3);
  EXPECT_EQ(tiles[1].keys, std::vector<std::int64_t>{1});
  EXPECT_DOUBLE_EQ(tiles[1].rescale, std::exp(-2.0));
  EXPECT_DOUBLE_EQ(tiles[1].sum, std::exp(-2.0) + 1);
  EXPECT_DOUBLE_EQ(tiles[1].out[0], 10 * std::exp(-2.0) + 20);
}

TEST(Heads, SplitTheColumns) {
  Problem problem = example();
  problem.heads = 2;
  const Trace worked = work(problem);
  ASSERT_EQ(worked.heads.size(), 2U);
  EXPECT_EQ(worked.scale, 1) << "1/sqrt(Dk) of one head, whose Dk is 1";
  EXPECT_EQ(worked.heads[1].q, (Matrix{{1}, {1}, {1}}));
  EXPECT_EQ(worked.heads[1].v, (Matrix{{0}, {4}, {1}}));
  EXPECT_EQ(worked.heads[0].scores, (Matrix{{4, 0, 2}, {0, 0, 0}, {2, 0, 1}}));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(worked.out[i], (std::vector<double>{worked.heads[0].out[i][0], worked.heads[1].out[i][0]}));
  }
  Problem alone = problem;
  alone.heads = 1;
  alone.x.clear();
  alone.q = worked.heads[1].q;
  alone.k = worked.heads[1].k;
  alone.v = worked.heads[1].v;
  EXPECT_EQ(work(alone).out, worked.heads[1].out);
}

TEST(Options, AppearAsStepsOfTheirOwn) {
  Problem problem = example();
  problem.options.softcap = 2;
  const double slopes[] = {0.5}, sinks[] = {1};
  problem.options.alibi = TensorView(slopes, DType::f64, {1});
  problem.options.sinks = TensorView(sinks, DType::f64, {1});
  const HeadTrace head = work(problem).heads[0];
  const double capped = 2 * std::tanh(3 / std::sqrt(2.0) / 2);
  EXPECT_NEAR(head.softcapped[2][0], capped, 1e-15);
  EXPECT_NEAR(head.biased[2][0], capped - 0.5 * 2, 1e-15);
  EXPECT_NEAR(head.weights[2][0] + head.weights[2][1] + head.weights[2][2] + head.sink_weights[2], 1, 1e-15);
}

TEST(Errors, NameWhatDoesNotFit) {
  const auto message = [](void (*change)(Problem&)) {
    Problem problem = example();
    change(problem);
    Trace worked;
    return trace(problem, &worked).message();
  };
  EXPECT_NE(message([](Problem& p) { p.x[1].pop_back(); }).find("x: row 1 has 3 numbers"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.wk.pop_back(); }).find("wk: 3 rows, but 4"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.tokens.pop_back(); }).find("x: 3 rows, but 2"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.tokens.clear(); }).find("tokens"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.heads = 3; }).find("heads: 3"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.heads = 0; }).find("heads: 0"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.replaced = {{'v', 3, {1, 2}}}; }).find("v[3]"), std::string::npos);
  EXPECT_NE(message([](Problem& p) { p.replaced = {{'k', 1, {1}}}; }).find("k[1]: 1 numbers"), std::string::npos);
  EXPECT_NE(message([](Problem& p) {
              p.wq = {{1}, {1}, {1}, {1}};
            }).find("k: 2 columns, but q has 1"),
            std::string::npos);
}

}  // namespace
}  // namespace attn::reference

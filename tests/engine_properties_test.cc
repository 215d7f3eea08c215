// What attention must satisfy whatever the numbers: order of keys and queries, merging, means, weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "engine_judge.h"
#include "engine_parts.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  return order;
}

// Row i becomes row order[i], in every head.
Tensor with_rows(const Tensor& from, const std::vector<std::int64_t>& order) {
  Tensor to(from.dtype(), from.shape());
  const auto rows = static_cast<std::int64_t>(order.size());
  const std::int64_t columns = from.shape().size() == 4 ? from.shape()[3] : 1;
  for (std::int64_t i = 0; i < from.size(); ++i) {
    const std::int64_t head = i / columns / rows, row = i / columns % rows;
    to.set_bits(i, from.bits((head * rows + order[row]) * columns + i % columns));
  }
  return to;
}

TEST(Properties, TheOrderOfKeysChangesNothingBeyondTheBound) {
  for (const std::int64_t keys : {5, 64, 300, 2500}) {
    Problem p = normal_problem({2, 4, 2, 9, keys, 16, 16}, keys);
    const std::vector<std::int64_t> order = shuffled(keys, 1);
    Problem mixed = p;
    mixed.k = with_rows(p.k, order);
    mixed.v = with_rows(p.v, order);
    const Answer answer = attend(mixed);
    EXPECT_TRUE(within_bound(p, answer)) << keys;
  }
}

TEST(Properties, ShuffledQueriesGiveShuffledRowsBitForBit) {
  for (const std::int64_t queries : {2, 40, 200, 500}) {
    Problem p = normal_problem({2, 4, 2, queries, 300, 16, 16}, queries);
    const std::vector<std::int64_t> order = shuffled(queries, 2);
    const Answer expected = attend(p);
    p.q = with_rows(p.q, order);
    EXPECT_TRUE(same_bits(attend(p), {with_rows(expected.out, order), with_rows(expected.lse, order)})) << queries;
  }
}

TEST(Properties, LaterTokensChangeNoBitOfACausalPrefix) {
  for (const std::int64_t length : {1, 17, 100, 256, 300, 2049}) {
    for (const std::int64_t more : {1, 63, 400}) {
      Problem longer = normal_problem({1, 2, 1, length + more, length + more, 8, 8}, 4);
      longer.plain.causal = true;
      Problem prefix = longer;
      prefix.sizes.queries = prefix.sizes.keys = length;
      for (Tensor* tensor : {&prefix.q, &prefix.k, &prefix.v}) *tensor = tensor->slice(2, 0, length);
      const Answer whole = attend(longer);
      EXPECT_TRUE(same_bits(attend(prefix), {whole.out.slice(2, 0, length), whole.lse.slice(2, 0, length)}));
    }
  }
}

TEST(Properties, FinishedPartsMergeToTheWholeWithinTheBound) {
  RecipeLimits limits;
  limits.packed = false;
  limits.most_work = 500'000;
  check_problems("merge", 150, limits, [](const Recipe& recipe, const Problem& drawn) {
    Problem p = drawn;
    p.sinks.reset();
    p.out_dtype = p.compute();
    const std::int64_t keys = p.sizes.keys;
    std::vector<std::int64_t> cuts{0, keys / 3, keys / 2, keys};
    if (recipe.seed % 2 == 0) cuts = {0, static_cast<std::int64_t>(recipe.seed % (keys + 1)), keys};
    std::vector<Answer> parts;
    for (std::size_t i = 1; i < cuts.size(); ++i) {
      parts.push_back(attend(keys_of(p, cuts[i - 1], cuts[i] - cuts[i - 1])));
    }
    std::vector<TensorView> outs, lses;
    for (const Answer& part : parts) {
      outs.push_back(part.out.view());
      lses.push_back(part.lse.view());
    }
    Answer merged = attend(p);
    const Status status = merge(outs, lses, merged.out.output(), merged.lse.output());
    if (!status.ok()) return testing::AssertionFailure() << status.message();
    // Each part is within the bound of its own, smaller problem, and the merge rounds once more.
    return within_bound(p, merged, 2);
  });
}

TEST(Properties, ScaleZeroGivesTheMeanOfVisibleValues) {
  Problem p = normal_problem({1, 2, 1, 50, 50, 8, 6}, 3);
  p.plain.scale = 0;
  p.plain.causal = true;
  const Answer answer = attend(p);
  for (std::int64_t i = 0; i < 50; ++i) {
    for (std::int64_t c = 0; c < 6; ++c) {
      double mean = 0;
      for (std::int64_t j = 0; j <= i; ++j) mean += p.v.get(j * 6 + c) / static_cast<double>(i + 1);
      EXPECT_NEAR(answer.out.get(i * 6 + c), mean, 1e-6);
    }
    EXPECT_NEAR(answer.lse.get(i), std::log(static_cast<double>(i + 1)), 1e-6);
  }
}

Tensor table_of(const Problem& p, std::span<const std::int64_t> rows = {},
                std::span<const std::int64_t> heads = {}) {
  const reference::Result expected = judge(p);
  const std::int64_t batch =
      p.query_starts.empty() ? p.sizes.batch : static_cast<std::int64_t>(p.query_starts.size()) - 1;
  const auto count = [](std::span<const std::int64_t> some, std::int64_t all) {
    return some.empty() ? all : static_cast<std::int64_t>(some.size());
  };
  Tensor table(p.compute(),
               {batch, count(heads, p.sizes.query_heads), count(rows, p.sizes.queries), expected.keys});
  const Status status = weights(p.q.view(), p.k.view(), table.output(), p.options(), rows, heads);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

// How far a weight may be off: as far as an output whose value is 1 for this key and 0 for all others.
double weight_tolerance(const Problem& p) { return p.compute() == DType::f64 ? 1e-10 : 2e-3; }

TEST(Weights, AreTheReferencesForEveryOption) {
  RecipeLimits limits;
  limits.packed = false;
  limits.most_work = 300'000;
  check_problems("weights", 250, limits, [](const Recipe& recipe, const Problem& drawn) {
    Problem p = drawn;
    if (recipe.spread > 3 ||
        recipe.odd_numbers != 0) {  // scores of thousands: relative errors of e^score are large
      p.q = normal_tensor(p.q.dtype(), p.q.shape(), recipe.seed);
      p.k = normal_tensor(p.k.dtype(), p.k.shape(), recipe.seed + 1);
    }
    const Tensor table = table_of(p);
    const reference::Result expected = judge(p);
    for (std::int64_t i = 0; i < table.size(); ++i) {
      const double most = weight_tolerance(p) * expected.weights[i] + 1e-30;
      if (!(std::fabs(table.get(i) - expected.weights[i]) <= most)) {
        return testing::AssertionFailure()
               << "weight " << i << " is " << table.get(i) << ", but should be " << expected.weights[i];
      }
    }
    return testing::AssertionSuccess();
  });
}

// Weights add up to 1 (less what a sink takes), and times v they are the output.
TEST(Weights, SumToOneAndMakeTheOutput) {
  RecipeLimits limits;
  limits.packed = false;
  limits.most_work = 300'000;
  check_problems("weights · v", 150, limits, [](const Recipe&, const Problem& drawn) {
    Problem p = drawn;
    p.sinks.reset();
    p.out_dtype = p.compute();
    const Sizes& s = p.sizes;
    const Tensor table = table_of(p);
    Answer answer = attend(p);
    for (std::int64_t row = 0; row < s.batch * s.query_heads * s.queries; ++row) {
      const std::int64_t b = row / s.queries / s.query_heads, h = row / s.queries % s.query_heads;
      const std::int64_t head = b * s.kv_heads + h / (s.query_heads / s.kv_heads);
      double sum = 0;
      std::vector<double> out(s.value_dim, 0.0);
      for (std::int64_t j = 0; j < s.keys; ++j) {
        const double weight = table.get(row * s.keys + j);
        sum += weight;
        for (std::int64_t c = 0; c < s.value_dim && weight != 0; ++c) {
          out[c] += weight * p.v.get((head * s.keys + j) * s.value_dim + c);
        }
      }
      const bool empty = answer.lse.get(row) == -std::numeric_limits<double>::infinity();
      if (!(std::fabs(sum - (empty ? 0 : 1)) < 1e-5)) return testing::AssertionFailure() << "row sum " << sum;
      for (std::int64_t c = 0; c < s.value_dim; ++c) answer.out.set(row * s.value_dim + c, out[c]);
    }
    return within_bound(p, answer);
  });
}

TEST(Weights, OfChosenRowsAndHeadsAreThoseOfTheTable) {
  Problem p = normal_problem({2, 6, 3, 20, 300, 8, 8}, 5);
  p.plain.causal = true;
  p.plain.alignment = Alignment::bottom_right;
  p.sinks = normal_tensor(DType::f32, {6}, 3);
  const std::vector<std::int64_t> rows{19, 0, 7, 7}, heads{5, 2};
  const Tensor all = table_of(p), some = table_of(p, rows, heads);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t j = 0; j < 300; ++j) {
          ASSERT_EQ(some.bits(some.index({b, h, i, j})), all.bits(all.index({b, heads[h], rows[i], j})));
        }
      }
    }
  }
}

TEST(Weights, OfPackedSequencesCountWithinEach) {
  Problem p = normal_problem({1, 2, 1, 5, 9, 4, 4}, 1);
  p.query_starts = {0, 2, 5};
  p.key_starts = {0, 6, 9};
  Tensor table(DType::f32, {2, 2, 3, 6});
  const Status status = weights(p.q.view(), p.k.view(), table.output(), p.options());
  ASSERT_TRUE(status.ok()) << status.message();
  const reference::Result expected = judge(p);  // [1, heads, 5 rows, 6 keys]
  for (std::int64_t s = 0; s < 2; ++s) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < 3; ++i) {
        for (std::int64_t j = 0; j < 6; ++j) {
          const std::int64_t queries = p.query_starts[s + 1] - p.query_starts[s];
          const double wanted = i < queries ? expected.weights[(h * 5 + p.query_starts[s] + i) * 6 + j] : 0;
          EXPECT_NEAR(table.get(table.index({s, h, i, j})), wanted, 1e-6) << s << h << i << j;
        }
      }
    }
  }
}

// attn/isa.h: all targets with fused multiply-adds give the same bits.
TEST(Weights, HaveTheSameBitsOnEveryTarget) {
  RecipeLimits limits;
  limits.packed = false;
  limits.most_work = 300'000;
  check_problems("weights on every target", 100, limits, [](const Recipe&, const Problem& p) {
    std::optional<Tensor> expected;
    for (const Isa isa : isas_with_equal_bits()) {
      const ForcedIsa forced(isa);
      const Tensor table = table_of(p);
      if (expected) {
        if (const auto same = same_bits(table, *expected); !same) {
          return testing::AssertionFailure() << name_of(isa) << ": " << same.message();
        }
      }
      expected = table;
    }
    return testing::AssertionSuccess();
  });
}

TEST(Weights, OfRowsThatSeeNothingAreZero) {
  Problem p = normal_problem({1, 2, 1, 4, 6, 4, 4}, 1);
  p.key_lengths = {3};
  p.mask = Tensor(DType::boolean, {1, 1, 4, 6});
  p.mask->fill([] { return 0.0; });
  for (std::int64_t j = 0; j < 6; ++j) p.mask->set(j, 1);  // row 0 sees what the length leaves
  for (const bool sinks : {false, true}) {
    if (sinks) p.sinks = normal_tensor(DType::f32, {2}, 1);
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      const Tensor table = table_of(p);
      for (std::int64_t i = 0; i < table.size(); ++i) {
        const bool visible = i / 6 % 4 == 0 && i % 6 < 3;
        EXPECT_EQ(table.bits(i) != 0, visible) << name_of(isa) << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace attn::tests

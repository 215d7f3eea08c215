// plan() says what forward() would do: its numbers add up and agree with what the judge counts.
#include <gtest/gtest.h>

#include "attn/numerics.h"
#include "engine_judge.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

Plan plan_of(const Problem& p) {
  Plan result;
  const Status status = plan(p.q.view(), p.k.view(), p.v.view(), p.options(), &result);
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

// What a tile and a key block are to each other, counted pair by pair.
struct Count {
  std::int64_t all = 0, full = 0, partial = 0, skipped = 0;
};

Count count_tiles(const Problem& p, const Plan& plan, const std::vector<bool>& visible) {
  const Sizes& s = p.sizes;
  const std::int64_t group = s.query_heads / s.kv_heads, rows = group * s.queries;
  Count count;
  for (std::int64_t head = 0; head < s.batch * s.kv_heads; ++head) {
    for (std::int64_t first = 0; first < rows; first += plan.query_tile_rows) {
      for (std::int64_t block = 0; block < s.keys; block += plan.key_block) {
        bool any = false, every = true;
        for (std::int64_t r = first; r < std::min(rows, first + plan.query_tile_rows); ++r) {
          for (std::int64_t j = block; j < std::min(s.keys, block + plan.key_block); ++j) {
            const bool seen = visible[((head * group + r % group) * s.queries + r / group) * s.keys + j];
            any = any || seen;
            every = every && seen;
          }
        }
        ++count.all;
        ++(every ? count.full : any ? count.partial : count.skipped);
      }
    }
  }
  return count;
}

void expect_tiles(const Problem& p) {
  const Plan plan = plan_of(p);
  const Count count = count_tiles(p, plan, visible_keys(p));
  EXPECT_EQ(plan.tiles_full, count.full);
  EXPECT_EQ(plan.tiles_partial, count.partial);
  EXPECT_EQ(plan.tiles_skipped, count.skipped);
}

TEST(Plan, SortsTilesIntoFullPartialAndSkipped) {
  Problem p = normal_problem({2, 4, 2, 400, 1100, 8, 8}, 1);
  expect_tiles(p);
  p.plain.alignment = Alignment::bottom_right;
  p.plain.causal = true;
  expect_tiles(p);
  p.plain.window_left = 300;
  expect_tiles(p);
  p.plain.sink_tokens = 5;
  expect_tiles(p);
  p.plain.alignment = Alignment::top_left;
  expect_tiles(p);
}

TEST(Plan, NeverSkipsATileThatSomeRowSees) {
  RecipeLimits limits;
  limits.packed = false;
  limits.most_work = 1'000'000;
  check_problems("tiles", 200, limits, [](const Recipe& recipe, const Problem& p) {
    if (recipe.ragged != Ragged::none || p.plain.key_offset != 0) return testing::AssertionSuccess();
    const Plan plan = plan_of(p);
    const Count count = count_tiles(p, plan, visible_keys(p));
    const std::int64_t all = plan.tiles_full + plan.tiles_partial + plan.tiles_skipped;
    if (p.sizes.queries > 0 && all != count.all) {
      return testing::AssertionFailure() << all << " tiles in the plan, but there are " << count.all;
    }
    if (plan.tiles_skipped > count.skipped) return testing::AssertionFailure() << "skips a tile that a row sees";
    if (plan.tiles_full > count.full) return testing::AssertionFailure() << "calls a tile full that is not";
    return testing::AssertionSuccess();
  });
}

TEST(Plan, CountsOperationsOfVisiblePairs) {
  RecipeLimits limits;
  limits.packed = false;
  check_problems("flops", 100, limits, [](const Recipe&, const Problem& drawn) {
    Problem p = drawn;  // intervals only: masks are looked at when the call runs
    p.mask.reset();
    p.bias.reset();
    double pairs = 0;
    for (const bool seen : visible_keys(p)) pairs += seen ? 1 : 0;
    const double flops = 2 * static_cast<double>(p.sizes.key_dim + p.sizes.value_dim) * pairs;
    const Plan plan = plan_of(p);
    if (plan.flops != flops) return testing::AssertionFailure() << plan.flops << " flops, but " << flops;
    return testing::AssertionSuccess();
  });
}

TEST(Plan, SaysPathTargetThreadsAndTasks) {
  const Problem p = normal_problem({2, 4, 2, 400, 1100, 8, 8}, 1);
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    const Plan plan = plan_of(p);
    EXPECT_EQ(plan.isa, isa);
    EXPECT_EQ(plan.path == "specification", isa == Isa::scalar) << plan.path;
    EXPECT_FALSE(plan.reason.empty());
    EXPECT_EQ(plan.compute, DType::f32);
    EXPECT_EQ(plan.threads, default_executor().threads());
    EXPECT_EQ(plan.key_block, kBlockKeys);
    const std::int64_t tiles = (2 * 400 + plan.query_tile_rows - 1) / plan.query_tile_rows;
    EXPECT_EQ(plan.tasks, 2 * 2 * tiles);
  }
  EXPECT_EQ(plan_of(normal_problem({1, 1, 1, 1, 1, 1, 1}, 1, DType::f64, DType::f64)).compute, DType::f64);
  Problem pooled = p;
  const auto pool = make_thread_pool(7, 0);
  pooled.plain.executor = pool.get();
  EXPECT_EQ(plan_of(pooled).threads, 7);
}

TEST(Plan, CountsBytesOnceAndTheTableThatIsNeverStored) {
  const Problem p = normal_problem({2, 4, 2, 30, 50, 8, 16}, 1, DType::f32, DType::bf16);
  const Plan plan = plan_of(p);
  EXPECT_EQ(plan.table_bytes, 2.0 * 4 * 30 * 50 * 4);
  EXPECT_EQ(plan.bytes, 2.0 * 4 * 30 * 8 * 4 + 2.0 * 2 * 50 * (8 + 16) * 2 + 2.0 * 4 * 30 * 16 * 4);
  Problem masked = p;
  masked.mask = Tensor(DType::boolean, {1, 1, 30, 50});
  EXPECT_EQ(plan_of(masked).bytes, plan.bytes + 30 * 50);
}

// Memory beyond the tensors grows with N + M, not with N × M.
TEST(Plan, NeedsMemoryThatGrowsWithTheLengthsOnly) {
  Problem p = normal_problem({1, 1, 1, 3000, 3000, 8, 8}, 1);
  const std::int64_t small = plan_of(p).scratch_bytes;
  EXPECT_GT(small, 0);
  p = normal_problem({1, 1, 1, 12000, 12000, 8, 8}, 1);
  EXPECT_LE(plan_of(p).scratch_bytes, 4 * small);
}

TEST(Plan, OfNothingIsNothing) {
  const Plan plan = plan_of(normal_problem({2, 4, 2, 0, 50, 8, 8}, 1));
  EXPECT_EQ(plan.tasks, 0);
  EXPECT_EQ(plan.flops, 0);
  EXPECT_EQ(plan.tiles_full + plan.tiles_partial + plan.tiles_skipped, 0);
}

}  // namespace
}  // namespace attn::tests

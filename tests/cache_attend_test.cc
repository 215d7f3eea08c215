// Attention over a cache has the bits of attention over tensors that hold the same numbers.
#include <gtest/gtest.h>

#include "attn/numerics.h"
#include "cache_problem.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

RecipeLimits cacheable() {
  RecipeLimits limits;
  limits.double_precision = false;
  limits.packed = false;
  limits.nonfinite = true;
  return limits;
}

testing::AssertionResult cache_agrees(const Problem& problem, CacheType type, std::int64_t page_tokens,
                                      std::uint64_t seed) {
  const CachedProblem kept = cached(problem, type, page_tokens, seed);
  const Problem stored = with_stored_numbers(problem, kept);
  const Answer expected = attend(stored);
  for (const Isa isa : isas_with_equal_bits()) {
    const ForcedIsa forced(isa);
    if (const auto same = same_bits(attend(stored, kept), expected); !same) {
      return testing::AssertionFailure()
             << name_of(isa) << ", " << name_of(type) << ", pages of " << page_tokens << ": " << same.message();
    }
  }
  return testing::AssertionSuccess();
}

TEST(CacheAttend, HasTheBitsOfTheStoredNumbers) {
  check_problems("cached equals stored numbers", 300, cacheable(),
                 [](const Recipe& recipe, const Problem& problem) {
                   if (problem.plain.key_offset != 0) return testing::AssertionSuccess();
                   const CacheType type = kCacheTypes[recipe.seed % 4];
                   const std::int64_t page = std::int64_t{16} << recipe.seed / 4 % 7;
                   return cache_agrees(problem, type, page, recipe.seed);
                 });
}

TEST(CacheAttend, OfSeveralSegmentsHasTheBitsOfTheStoredNumbers) {
  RecipeLimits limits = cacheable();
  limits.many_keys = true;
  limits.most_work = 1'000'000;
  check_problems("long cached sequences", 40, limits, [](const Recipe& recipe, const Problem& problem) {
    if (problem.plain.key_offset != 0) return testing::AssertionSuccess();
    return cache_agrees(problem, kCacheTypes[recipe.seed % 4], std::int64_t{16} << recipe.seed / 4 % 9,
                        recipe.seed);
  });
}

TEST(CacheAttend, HasTheBitsForEveryHeadDimAndType) {
  for (std::int64_t d = 1; d <= 300; d += effort(100) < 100 ? 47 : 3) {
    for (const CacheType type : kCacheTypes) {
      EXPECT_TRUE(cache_agrees(normal_problem({1, 2, 1, 2, 70, d, 301 - d}, d), type, 32, d)) << "Dk " << d;
      EXPECT_TRUE(cache_agrees(normal_problem({1, 8, 1, 5, 70, d, 301 - d}, d), type, 64, d)) << "Dk " << d;
    }
  }
}

// Tiles of many rows read f32 pages in place, and unpack others once for all of them.
TEST(CacheAttend, OfLongPromptsHasTheBitsOfTheStoredNumbers) {
  for (const CacheType type : kCacheTypes) {
    for (const std::int64_t page : {16, 64, 256, 1024}) {
      const std::int64_t length = effort(100) < 100 ? 130 : 300;
      Problem problem = normal_problem({2, 4, 2, length, length, 72, 80}, 3);
      problem.plain.causal = true;
      EXPECT_TRUE(cache_agrees(problem, type, page, 4)) << name_of(type) << ", pages of " << page;
    }
  }
}

TEST(CacheAttend, OfAnF32CacheHasTheBitsOfTheTensorsThemselves) {
  check_problems("f32 cache equals tensors", 150, cacheable(), [](const Recipe& recipe, const Problem& problem) {
    if (problem.plain.key_offset != 0 || problem.mask || problem.bias) return testing::AssertionSuccess();
    return same_bits(attend(problem, cached(problem, CacheType::f32, 32, recipe.seed)), attend(problem));
  });
}

}  // namespace
}  // namespace attn::tests

// What a cache makes of the numbers that it is given.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "cache_problem.h"
#include "engine_problem.h"
#include "src/cache/contents.h"

namespace attn::tests {
namespace {

// One head's keys, as the cache holds them.
std::vector<float> stored_keys(const Tensor& k, CacheType type) {
  const auto& shape = k.shape();
  Problem problem = normal_problem({1, 1, 1, 1, shape[2], shape[3], 1}, 1);
  problem.k = k;
  const Problem stored = with_stored_numbers(problem, cached(problem, type, 16, 1));
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < stored.k.size(); ++i) numbers.push_back(static_cast<float>(stored.k.get(i)));
  return numbers;
}

TEST(CacheStore, RoundsTo16BitsAsTheConversionsDo) {
  Tensor k = normal_tensor(DType::f32, {1, 1, 40, 33}, 1);
  k.set(3, 1e-6);  // denormal in f16
  k.set(4, 1e-41);
  k.set(5, 70000);
  const std::vector<float> f32 = stored_keys(k, CacheType::f32), f16 = stored_keys(k, CacheType::f16),
                           bf16 = stored_keys(k, CacheType::bf16);
  for (std::size_t i = 0; i < f32.size(); ++i) {
    const auto number = static_cast<float>(k.get(static_cast<std::int64_t>(i)));
    ASSERT_EQ(f32[i], number);
    ASSERT_EQ(f16[i], f16_to_float(float_to_f16(number)));
    ASSERT_EQ(bf16[i], bf16_to_float(float_to_bf16(number)));
  }
}

// Of each group of 32: a scale that is the least f16 for which nothing overflows, and every number within half of it.
TEST(CacheStore, RoundsToTheNearestOf8Bits) {
  for (const double spread : {1e-9, 1e-3, 1.0, 1e4, 1e6}) {
    const std::int64_t dim = 75;
    const Tensor k = normal_tensor(DType::f32, {1, 1, 40, dim}, 2, spread);
    const std::vector<float> stored = stored_keys(k, CacheType::q8);
    for (std::int64_t row = 0; row < 40; ++row) {
      for (std::int64_t first = 0; first < dim; first += kScaleGroup) {
        const std::int64_t end = std::min(first + kScaleGroup, dim);
        double largest = 0;
        for (std::int64_t d = first; d < end; ++d) largest = std::max(largest, std::fabs(k.get(row * dim + d)));
        // Rounding the scale up costs at most one step of f16, which is 2^−24 below its normal numbers.
        const double scale = largest / 127 + std::max(largest / 127 * 0x1p-10, 0x1p-24);
        for (std::int64_t d = first; d < end; ++d)
          ASSERT_LE(std::fabs(stored[row * dim + d] - k.get(row * dim + d)), scale / 2 * (1 + 1e-6)) << spread;
      }
    }
  }
}

TEST(CacheStore, ShowsWhat8BitsCannotHold) {
  for (const double odd : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e7}) {
    Tensor k = normal_tensor(DType::f32, {1, 1, 2, 70}, 3);
    k.set(40, odd);
    const std::vector<float> stored = stored_keys(k, CacheType::q8);
    for (std::int64_t d = 0; d < 140; ++d) EXPECT_EQ(std::isnan(stored[d]), d >= 32 && d < 64) << odd << ", " << d;
  }
}

#if defined(__SSE__)
TEST(CacheStore, DoesNotDependOnTheCallersRounding) {
  Tensor k = normal_tensor(DType::f32, {1, 1, 33, 40}, 4);
  for (std::int64_t i = 0; i < k.size(); i += 7) k.set(i, k.get(i) * 1e-6);
  for (const CacheType type : kCacheTypes) {
    const std::vector<float> expected = stored_keys(k, type);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040 | 0x4000);  // flush denormals, round up
    const std::vector<float> actual = stored_keys(k, type);
    _mm_setcsr(before);
    EXPECT_EQ(actual, expected) << name_of(type);
  }
}
#endif

TEST(CacheStore, TakesPackedTokens) {
  const Problem p = normal_problem({1, 2, 2, 1, 60, 24, 8}, 5);
  std::unique_ptr<KvCache> cache;
  ASSERT_TRUE(KvCache::create({.kv_heads = 2, .key_dim = 24, .value_dim = 8, .page_tokens = 16}, &cache).ok());
  std::vector<SequenceId> packed, alone;
  for (int i = 0; i < 3; ++i) {
    packed.push_back(new_sequence(cache.get()));
    alone.push_back(new_sequence(cache.get()));
  }
  const std::int64_t starts[] = {0, 17, 17, 58};
  ASSERT_EQ(cache->append(packed, p.k.view(), p.v.view(), starts).message(), "");
  for (int i = 0; i < 3; ++i) {
    const Tensor k = tokens_of(p.k, 0, starts[i], starts[i + 1] - starts[i]);
    const Tensor v = tokens_of(p.v, 0, starts[i], starts[i + 1] - starts[i]);
    ASSERT_EQ(cache->append(alone[i], k.view(), v.view()).message(), "");
    EXPECT_EQ(cache->length(packed[i]), starts[i + 1] - starts[i]);
    if (starts[i + 1] == starts[i]) continue;
    Tensor of_packed(DType::f32, {1, 2, 1, 8}), of_alone(DType::f32, {1, 2, 1, 8});
    ASSERT_TRUE(cache->attend({&packed[i], 1}, p.q.view(), of_packed.output()).ok());
    ASSERT_TRUE(cache->attend({&alone[i], 1}, p.q.view(), of_alone.output()).ok());
    EXPECT_TRUE(same_bits(of_packed, of_alone)) << i;
  }
}

class CountingExecutor : public Executor {
 public:
  int threads() const override { return 1; }
  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    for (std::int64_t i = 0; i < count; ++i) task(context, i, 0);
    tasks += count;
  }
  std::int64_t tasks = 0;
};

TEST(CacheStore, AsksTheHostsExecutor) {
  CountingExecutor executor;
  std::unique_ptr<KvCache> cache;
  ASSERT_TRUE(KvCache::create({.kv_heads = 4, .key_dim = 64, .executor = &executor}, &cache).ok());
  const Tensor k = normal_tensor(DType::f32, {4, 2000, 64}, 6);
  ASSERT_TRUE(cache->append(new_sequence(cache.get()), k.view(), k.view()).ok());
  EXPECT_EQ(executor.tasks, 4);
}

// 16-bit products over a cache are those over tensors of its numbers.
TEST(CacheStore, MultipliesIn16BitsAsTensorsDo) {
  if (!bf16_products_available()) GTEST_SKIP() << "no 16-bit products here: skipped";
  for (const CacheType type : kCacheTypes) {
    for (const std::int64_t keys : {5, 16, 47, 300, 2100}) {
      Problem problem = normal_problem({2, 4, 2, 5, keys, 40, 24}, 7);
      problem.plain.bf16_products = true;
      const CachedProblem kept = cached(problem, type, 16, 8);
      const Problem stored = with_stored_numbers(problem, kept);
      EXPECT_TRUE(same_bits(attend(stored, kept), attend(stored))) << name_of(type) << ", " << keys << " keys";
    }
  }
}

}  // namespace
}  // namespace attn::tests

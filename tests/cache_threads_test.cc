// Many threads read one cache at the same time, while nobody writes; appending uses many threads itself.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cache_problem.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

TEST(CacheThreads, AttendAtTheSameTime) {
  const Problem problem = normal_problem({4, 8, 2, 3, 700, 64, 64}, 1);
  for (const CacheType type : kCacheTypes) {
    const CachedProblem kept = cached(problem, type, 32, 1);
    const Answer expected = attend(problem, kept);
    std::vector<Answer> answers(6);
    std::vector<std::thread> threads;
    for (Answer& answer : answers) threads.emplace_back([&] { answer = attend(problem, kept); });
    for (std::thread& thread : threads) thread.join();
    for (const Answer& answer : answers) EXPECT_TRUE(same_bits(answer, expected)) << name_of(type);
  }
}

TEST(CacheThreads, AppendManyTokensAtOnceAsOneByOne) {
  const std::int64_t tokens = effort(100) < 100 ? 700 : 3000;
  const Problem problem = normal_problem({2, 4, 4, 1, tokens, 64, 64}, 2);
  for (const CacheType type : kCacheTypes) {
    CachedProblem at_once = cached(problem, type, 64, 3), in_one;
    ASSERT_TRUE(
        KvCache::create({.kv_heads = 4, .key_dim = 64, .type = type, .page_tokens = 64}, &in_one.cache).ok());
    in_one.sequences = {new_sequence(in_one.cache.get()), new_sequence(in_one.cache.get())};
    ASSERT_TRUE(in_one.cache->append(in_one.sequences, problem.k.view(), problem.v.view()).ok());
    EXPECT_TRUE(same_bits(attend(problem, in_one), attend(problem, at_once))) << name_of(type);
  }
}

}  // namespace
}  // namespace attn::tests

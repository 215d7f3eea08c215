// A sequence of 300 tokens through a cache, in every chunking, page size and after every operation: the bits of attention
// over the whole.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cache_problem.h"
#include "engine_parts.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

constexpr std::int64_t kTokens = 300;
constexpr std::int64_t kPages[] = {16, 32, 64, 128, 256};

Problem prompt(std::int64_t tokens = kTokens) {
  Problem problem = normal_problem({1, 4, 2, tokens, tokens, 24, 40}, 1);
  problem.plain.causal = true;
  return problem;
}

std::unique_ptr<KvCache> cache_for(const Problem& p, CacheType type, std::int64_t page) {
  std::unique_ptr<KvCache> cache;
  const Status status = KvCache::create({.kv_heads = p.sizes.kv_heads,
                                         .key_dim = p.sizes.key_dim,
                                         .value_dim = p.sizes.value_dim,
                                         .type = type,
                                         .page_tokens = page},
                                        &cache);
  EXPECT_EQ(status.message(), "");
  return cache;
}

void append(KvCache* cache, SequenceId id, const Problem& p, std::int64_t first, std::int64_t count) {
  const Tensor k = tokens_of(p.k, 0, first, count), v = tokens_of(p.v, 0, first, count);
  ASSERT_EQ(cache->append(id, k.view(), v.view()).message(), "");
}

// The problem's queries [first, first + count), the last of the sequence's tokens.
Answer attend_last(const KvCache& cache, SequenceId id, const Problem& p, std::int64_t first, std::int64_t count) {
  const Tensor q = tokens_of(p.q, 0, first, count);
  Answer answer{Tensor(DType::f32, {1, p.sizes.query_heads, count, p.sizes.value_dim}),
                Tensor(DType::f32, {1, p.sizes.query_heads, count})};
  AttentionOptions options = p.options();
  EXPECT_EQ(cache.attend({&id, 1}, q.view(), answer.out.output(), options, answer.lse.output()).message(), "");
  return answer;
}

Answer rows(const Answer& whole, std::int64_t first, std::int64_t count) {
  return {whole.out.slice(2, first, count), whole.lse.slice(2, first, count)};
}

// What attention over all stored numbers gives.
Answer whole_of(const Problem& p, CacheType type, std::int64_t page) {
  return attend(with_stored_numbers(p, cached(p, type, page, 1)));
}

TEST(CacheChunks, OfEverySizeGiveTheWholesBits) {
  const Problem p = prompt();
  for (const CacheType type : kCacheTypes) {
    const Answer whole = type == CacheType::f32 ? attend(p) : whole_of(p, type, 64);
    for (const std::int64_t page : kPages) {
      const std::int64_t step = type == CacheType::f32 && page == 64 ? 1 : 13;
      for (std::int64_t chunk = 1; chunk <= kTokens; chunk += effort(100) < 100 ? 97 : step) {
        const auto cache = cache_for(p, type, page);
        const SequenceId id = new_sequence(cache.get());
        for (std::int64_t first = 0; first < kTokens; first += chunk) {
          const std::int64_t count = std::min(chunk, kTokens - first);
          append(cache.get(), id, p, first, count);
          ASSERT_TRUE(same_bits(attend_last(*cache, id, p, first, count), rows(whole, first, count)))
              << name_of(type) << ", pages of " << page << ", chunks of " << chunk << ", row " << first;
        }
      }
    }
  }
}

TEST(CacheChunks, AfterForkTruncateSaveAndLoadGiveTheWholesBits) {
  const Problem p = prompt();
  for (const CacheType type : kCacheTypes) {
    const Answer whole = type == CacheType::f32 ? attend(p) : whole_of(p, type, 64);
    for (const std::int64_t page : kPages) {
      for (const std::int64_t cut : {0, 1, 15, 16, 17, 100, 255, 256, 257, 299}) {
        if (effort(100) < 100 && cut != 17 && cut != 256) continue;
        auto cache = cache_for(p, type, page);
        const SequenceId id = new_sequence(cache.get());
        append(cache.get(), id, p, 0, cut);
        SequenceId copy = -1;
        ASSERT_EQ(cache->fork(id, &copy).message(), "");
        append(cache.get(), id, p, 0, kTokens - cut);  // other tokens: the fork must not see them
        append(cache.get(), copy, p, cut, kTokens - cut);
        ASSERT_EQ(cache->truncate(copy, (cut + kTokens) / 2).message(), "");
        append(cache.get(), copy, p, (cut + kTokens) / 2, kTokens - (cut + kTokens) / 2);
        ASSERT_TRUE(same_bits(attend_last(*cache, copy, p, 0, kTokens), whole)) << "fork at " << cut;

        const auto path =
            std::filesystem::temp_directory_path() / ("attn-cache-chunks-" + std::to_string(getpid()));
        ASSERT_EQ(cache->save(path.string()).message(), "");
        ASSERT_EQ(KvCache::load(path.string(), &cache).message(), "");
        std::filesystem::remove(path);
        ASSERT_TRUE(same_bits(attend_last(*cache, copy, p, 0, kTokens), whole)) << "loaded, fork at " << cut;
        ASSERT_TRUE(same_bits(attend_last(*cache, copy, p, kTokens - 1, 1), rows(whole, kTokens - 1, 1)));
      }
    }
  }
}

TEST(CacheChunks, WithAWindowAndDroppedTokensGiveTheWholesBits) {
  Problem p = prompt();
  p.plain.window_left = 60;
  p.plain.sink_tokens = 5;
  for (const CacheType type : kCacheTypes) {
    const Answer whole = type == CacheType::f32 ? attend(p) : whole_of(p, type, 64);
    for (const std::int64_t page : kPages) {
      const auto cache = cache_for(p, type, page);
      const SequenceId id = new_sequence(cache.get());
      std::int64_t most_pages = 0;
      for (std::int64_t i = 0; i < kTokens; ++i) {
        append(cache.get(), id, p, i, 1);
        ASSERT_TRUE(same_bits(attend_last(*cache, id, p, i, 1), rows(whole, i, 1)))
            << name_of(type) << ", pages of " << page << ", row " << i;
        // The next query, at i + 1, sees i + 1 − 60 and later.
        ASSERT_EQ(cache->drop_before(id, std::max<std::int64_t>(0, i + 1 - 60), 5).message(), "");
        most_pages = std::max(most_pages, cache->usage().pages_in_use);
      }
      EXPECT_LE(most_pages, 1 + 2 + 60 / page) << "pages of " << page << " were not given back";
    }
  }
}

// Sequences of all lengths in one call, some with many queries and some with none.
TEST(CacheChunks, OfRaggedBatchesGiveTheBitsOfEachAlone) {
  const Problem p = prompt();
  const Answer whole = attend(p);
  const auto cache = cache_for(p, CacheType::f32, 32);
  std::vector<SequenceId> ids;
  std::vector<std::int64_t> starts{0};
  const std::int64_t lengths[] = {300, 1, 0, 17, 256, 33}, queries[] = {40, 1, 0, 17, 1, 8};
  Tensor q(DType::f32, {1, 4, 67, 24}), out(DType::f32, {1, 4, 67, 40});
  for (int b = 0; b < 6; ++b) {
    ids.push_back(new_sequence(cache.get()));
    append(cache.get(), ids.back(), p, 0, lengths[b]);
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t i = 0; i < queries[b]; ++i) {
        for (std::int64_t d = 0; d < 24; ++d)
          q.set(q.index({0, h, starts[b] + i, d}), p.q.get(p.q.index({0, h, lengths[b] - queries[b] + i, d})));
      }
    }
    starts.push_back(starts.back() + queries[b]);
  }
  AttentionOptions options;
  options.causal = true;
  options.query_starts = starts;
  ASSERT_EQ(cache->attend(ids, q.view(), out.output(), options).message(), "");
  for (int b = 0; b < 6; ++b) {
    EXPECT_TRUE(
        same_bits(out.slice(2, starts[b], queries[b]), whole.out.slice(2, lengths[b] - queries[b], queries[b])))
        << "sequence " << b;
  }
}

}  // namespace
}  // namespace attn::tests

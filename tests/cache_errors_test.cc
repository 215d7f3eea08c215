// Wrong use of a cache: one sentence that says what to do, and nothing changed.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "attn/kv_cache.h"
#include "cache_problem.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

class CacheErrors : public testing::Test {
 protected:
  CacheErrors() {
    EXPECT_TRUE(KvCache::create({.kv_heads = 2, .key_dim = 4, .value_dim = 6, .page_tokens = 16}, &cache_).ok());
    id_ = new_sequence(cache_.get());
    EXPECT_EQ(append(20), "");
  }

  std::string append(std::int64_t tokens) {
    const Tensor k = normal_tensor(DType::f32, {2, tokens, 4}, 1), v = normal_tensor(DType::f32, {2, tokens, 6}, 2);
    return cache_->append(id_, k.view(), v.view()).message();
  }

  std::string append(const Tensor& k, const Tensor& v) { return cache_->append(id_, k.view(), v.view()).message(); }

  std::string attend(const AttentionOptions& options, std::vector<std::int64_t> shape = {1, 2, 1, 4},
                     DType dtype = DType::f32) {
    const Tensor q = normal_tensor(dtype, shape, 3);
    Tensor out(dtype, {shape[0], shape[1], shape[2], 6});
    return cache_->attend({&id_, 1}, q.view(), out.output(), options).message();
  }

  std::unique_ptr<KvCache> cache_;
  SequenceId id_ = -1;
};

std::string create(KvCacheOptions options) {
  std::unique_ptr<KvCache> cache;
  return KvCache::create(options, &cache).message();
}

TEST_F(CacheErrors, OfOptionsNameSizeAndRule) {
  EXPECT_EQ(create({.kv_heads = 0, .key_dim = 4}), "kv_heads: 0; a cache has 1 to 1048576");
  EXPECT_EQ(create({.kv_heads = 1, .key_dim = -4}), "key_dim: -4; a cache has 1 to 1048576");
  EXPECT_EQ(create({.kv_heads = 1, .key_dim = 4, .value_dim = -1}), "value_dim: -1; a cache has 1 to 1048576");
  EXPECT_EQ(create({.kv_heads = 1, .key_dim = 4, .page_tokens = 48}),
            "page_tokens: 48; a page has a power of two of tokens, from 16 to 65536");
  EXPECT_EQ(create({.kv_heads = 1, .key_dim = 4, .page_tokens = 8}),
            "page_tokens: 8; a page has a power of two of tokens, from 16 to 65536");
  EXPECT_EQ(create({.kv_heads = 1, .key_dim = 16, .page_tokens = 16, .most_bytes = 100}),
            "most_bytes: 100, but a page of 16 tokens takes 2048; allow more, or make pages smaller");
  EXPECT_NE(create({.kv_heads = 1 << 20, .key_dim = 1 << 20, .page_tokens = 65536}).find("are the most"),
            std::string::npos);
}

TEST_F(CacheErrors, OfAppendNameTensorAndRule) {
  const Tensor k = normal_tensor(DType::f32, {2, 3, 4}, 1), v = normal_tensor(DType::f32, {2, 3, 6}, 2);
  EXPECT_EQ(append(normal_tensor(DType::f32, {3, 3, 4}, 1), v),
            "k: 3 heads, but the cache has 2 key/value heads; give [2, n, 4]");
  EXPECT_EQ(append(normal_tensor(DType::f32, {2, 3, 5}, 1), v),
            "k: head dim 5, but the cache has 4; both must be equal");
  EXPECT_EQ(append(k, normal_tensor(DType::f32, {2, 4, 6}, 1)),
            "v: tokens 4, but k has 3; every key needs its value");
  EXPECT_EQ(append(normal_tensor(DType::f64, {2, 3, 4}, 1), v), "k: dtype f64; a cache takes f32, f16 or bf16");
  EXPECT_EQ(append(normal_tensor(DType::f32, {4}, 1), v),
            "k: 1 dimensions; [n, D], [heads, n, D] or [batch, heads, n, D] is needed");
  EXPECT_EQ(append(normal_tensor(DType::f32, {2, 2, 3, 4}, 1), normal_tensor(DType::f32, {2, 2, 3, 6}, 1)),
            "k: batch 2, but 1 sequences are given; give one entry a sequence");
  EXPECT_EQ(cache_->append(77, k.view(), v.view()).message(),
            "sequence: 77 is not in this cache; add_sequence() and fork() make sequences, release() ends them");
  const SequenceId twice[] = {id_, id_};
  const Tensor k2 = normal_tensor(DType::f32, {2, 2, 3, 4}, 1), v2 = normal_tensor(DType::f32, {2, 2, 3, 6}, 1);
  EXPECT_EQ(cache_->append(twice, k2.view(), v2.view()).message(),
            "sequences: 0 is given twice; one append has one part for each sequence");
  const std::int64_t starts[] = {0, 5};
  EXPECT_EQ(cache_->append({&id_, 1}, k.view(), v.view(), starts).message(),
            "starts: ends at 5, but the packed tensor has 3 rows; starts must stay inside");
  EXPECT_EQ(cache_->length(id_), 20);
}

TEST_F(CacheErrors, OfPagesSayHowManyAreMissing) {
  std::unique_ptr<KvCache> small;
  ASSERT_TRUE(
      KvCache::create({.kv_heads = 2, .key_dim = 4, .value_dim = 6, .page_tokens = 16, .most_bytes = 10000}, &small)
          .ok());
  const SequenceId id = new_sequence(small.get());
  const Tensor k = normal_tensor(DType::f32, {2, 40, 4}, 1), v = normal_tensor(DType::f32, {2, 40, 6}, 2);
  EXPECT_EQ(small->append(id, k.view(), v.view()).message(), "");
  EXPECT_EQ(small->append(id, k.view(), v.view()).message(),
            "cache: 2 more pages of 2560 bytes are needed, 0 are free and 0 more fit most_bytes 10000; release or "
            "truncate "
            "sequences, or allow more");
  EXPECT_EQ(small->length(id), 40);
  EXPECT_NE(small->reserve(std::numeric_limits<std::int64_t>::max()).message(), "");
  EXPECT_NE(cache_->reserve(std::numeric_limits<std::int64_t>::max()).message(), "");
  EXPECT_EQ(cache_->reserve(-1).message(), "tokens: -1; reserve 0 or more");
}

TEST_F(CacheErrors, OfSequencesNameTheLength) {
  SequenceId copy = -1;
  EXPECT_NE(cache_->fork(9, &copy).message().find("sequence: 9 is not"), std::string::npos);
  EXPECT_EQ(cache_->truncate(id_, 21).message(), "tokens: 21, but sequence 0 has 20; keep 0 to all of them");
  EXPECT_EQ(cache_->drop_before(id_, 21).message(),
            "position: 21, but sequence 0 has 20 tokens; give 0 to that many");
  EXPECT_EQ(cache_->drop_before(id_, 3, -1).message(),
            "sink_tokens: -1; the number of tokens that stay is 0 or more");
  EXPECT_EQ(cache_->length(9), -1);
}

TEST_F(CacheErrors, OfAttendNameWhatACacheKnowsItself) {
  AttentionOptions options;
  EXPECT_EQ(attend(options), "");
  EXPECT_EQ(attend(options, {1, 3, 1, 4}),
            "q: 3 heads, but cache has 2; query heads must be a multiple of key/value heads");
  EXPECT_EQ(attend(options, {1, 2, 1, 5}), "cache: head dim 4, but q has 5; both are Dk and must be equal");
  EXPECT_EQ(attend(options, {2, 2, 1, 4}), "q: batch 2, but 1 sequences are given; each needs its queries");
  EXPECT_EQ(attend(options, {1, 2, 1, 4}, DType::f64),
            "q: dtype f64; attention over a cache is computed in f32: give f32, f16 or bf16");
  EXPECT_EQ(
      attend(options, {1, 2, 21, 4}),
      "q: 21 queries, but sequence 0 of the batch has 20 tokens; append their keys and values first, or say by "
      "alignment where they sit");
  const std::int64_t lengths[] = {3};
  options.key_lengths = lengths;
  EXPECT_EQ(attend(options),
            "key_lengths: given, but the cache knows its sequences' lengths and positions; leave it out");
  options = {};
  options.key_offset = 4;
  EXPECT_EQ(attend(options),
            "key_offset: given, but the cache knows its sequences' lengths and positions; leave it out");
}

TEST_F(CacheErrors, OfDroppedTokensNameTheQueryThatWouldSeeThem) {
  ASSERT_TRUE(cache_->drop_before(id_, 10, 2).ok());
  AttentionOptions options;
  options.causal = true;
  EXPECT_EQ(attend(options),
            "cache: tokens 2 to 9 of sequence 0 of the batch were dropped, but query 0 at position 19 sees tokens "
            "0 to 19; "
            "drop less, or see less by causal, window_left and sink_tokens");
  options.window_left = 9;
  EXPECT_EQ(attend(options), "");
  options.window_left = 10;
  EXPECT_NE(attend(options), "");
  options.window_left = 9;
  options.sink_tokens = 2;
  EXPECT_EQ(attend(options), "");
  options.sink_tokens = 3;
  EXPECT_NE(attend(options), "");
}

}  // namespace
}  // namespace attn::tests

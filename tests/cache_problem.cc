#include "cache_problem.h"

#include <algorithm>
#include <random>

#include "src/cache/contents.h"

namespace attn::tests {
namespace {

std::int64_t valid_keys(const Problem& p, std::int64_t sequence) {
  return p.key_lengths.empty() ? p.sizes.keys : p.key_lengths[sequence];
}

// A sequence that takes pages between those of others.
void append_noise(KvCache* cache, SequenceId sequence, std::int64_t tokens) {
  const KvCacheOptions& o = cache->options();
  const Tensor k = normal_tensor(DType::f32, {o.kv_heads, tokens, o.key_dim}, 5);
  const Tensor v = normal_tensor(DType::f32, {o.kv_heads, tokens, o.value_dim}, 6);
  ASSERT_EQ(cache->append(sequence, k.view(), v.view()).message(), "");
}

}  // namespace

SequenceId new_sequence(KvCache* cache) {
  SequenceId id = -1;
  EXPECT_EQ(cache->add_sequence(&id).message(), "");
  return id;
}

Tensor tokens_of(const Tensor& tensor, std::int64_t sequence, std::int64_t first, std::int64_t count) {
  return tensor.slice(0, sequence, 1).slice(2, first, count);
}

CachedProblem cached(const Problem& p, CacheType type, std::int64_t page_tokens, std::uint64_t seed) {
  CachedProblem result;
  const Status status = KvCache::create({.kv_heads = p.sizes.kv_heads,
                                         .key_dim = p.sizes.key_dim,
                                         .value_dim = p.sizes.value_dim,
                                         .type = type,
                                         .page_tokens = page_tokens},
                                        &result.cache);
  EXPECT_EQ(status.message(), "");
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> unfinished;
  for (std::int64_t b = 0; b < p.sizes.batch; ++b) {
    result.sequences.push_back(new_sequence(result.cache.get()));
    if (valid_keys(p, b) > 0) unfinished.push_back(b);
  }
  SequenceId noise = new_sequence(result.cache.get());
  while (!unfinished.empty()) {
    const std::size_t at = random() % unfinished.size();
    const std::int64_t b = unfinished[at], done = result.cache->length(result.sequences[b]);
    const std::int64_t rest = valid_keys(p, b) - done;
    const std::int64_t most = random() % 3 == 0 ? 1 : 2 * page_tokens;
    const std::int64_t count = std::min<std::int64_t>(rest, 1 + static_cast<std::int64_t>(random() % most));
    const Tensor k = tokens_of(p.k, b, done, count), v = tokens_of(p.v, b, done, count);
    EXPECT_EQ(result.cache->append(result.sequences[b], k.view(), v.view()).message(), "");
    if (count == rest) unfinished.erase(unfinished.begin() + static_cast<std::ptrdiff_t>(at));
    append_noise(result.cache.get(), noise, 1 + static_cast<std::int64_t>(random() % 9));
    if (random() % 5 == 0) {
      EXPECT_EQ(result.cache->release(noise).message(), "");
      noise = new_sequence(result.cache.get());
    }
  }
  return result;
}

Problem with_stored_numbers(const Problem& p, const CachedProblem& cached) {
  const KvCache::Contents& contents = KvCache::Contents::of(*cached.cache);
  const PageLayout& layout = contents.layout;
  Problem stored = p;
  std::vector<CachedSequence> sequences;
  SequenceId missing = 0;
  EXPECT_TRUE(contents.read(cached.sequences, &sequences, &missing));
  std::int64_t longest = 0;
  stored.key_lengths.clear();
  for (const CachedSequence& s : sequences) {
    longest = std::max(longest, s.tokens);
    stored.key_lengths.push_back(s.tokens);
  }
  stored.sizes.keys = longest;
  stored.k = Tensor(DType::f32, {p.sizes.batch, p.sizes.kv_heads, longest, p.sizes.key_dim});
  stored.v = Tensor(DType::f32, {p.sizes.batch, p.sizes.kv_heads, longest, p.sizes.value_dim});
  const CachedKeys keys{layout, sequences, &contents.empty_page};
  for (std::int64_t b = 0; b < p.sizes.batch; ++b) {
    for (std::int64_t h = 0; h < p.sizes.kv_heads; ++h) {
      for (std::int64_t j = 0; j < sequences[b].tokens; ++j) {
        for (std::int64_t d = 0; d < p.sizes.key_dim; ++d)
          stored.k.set(stored.k.index({b, h, j, d}),
                       load_key(layout.unit, keys.key_unit(b, h, j), j % kUnitKeys, d));
        for (std::int64_t c = 0; c < p.sizes.value_dim; ++c)
          stored.v.set(stored.v.index({b, h, j, c}),
                       load_value(layout.unit, keys.value_unit(b, h, j), j % kUnitKeys, c));
      }
    }
  }
  for (std::optional<Tensor>* tensor : {&stored.mask, &stored.bias}) {
    if (!*tensor || (*tensor)->shape().empty() || (*tensor)->shape().back() == 1) continue;
    *tensor = (*tensor)->slice(static_cast<int>((*tensor)->shape().size()) - 1, 0, longest);
  }
  return stored;
}

Answer attend(const Problem& p, const CachedProblem& cached) {
  Answer answer{
      Tensor(p.out_dtype, {p.sizes.batch, p.sizes.query_heads, p.sizes.queries, p.sizes.value_dim}, p.out_layout),
      Tensor(DType::f32, {p.sizes.batch, p.sizes.query_heads, p.sizes.queries})};
  AttentionOptions options = p.options();
  options.key_lengths = {};
  // Some random problems have more queries than keys, which the default would take for an append that was forgotten.
  if (options.alignment == Alignment::equal_lengths) options.alignment = Alignment::bottom_right;
  const Status status =
      cached.cache->attend(cached.sequences, p.q.view(), answer.out.output(), options, answer.lse.output());
  EXPECT_EQ(status.message(), "");
  EXPECT_TRUE(answer.out.gaps_untouched());
  return answer;
}

}  // namespace attn::tests

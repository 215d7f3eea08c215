// Decoding with a KV cache: a prompt, then token by token; two continuations share it, and one takes tokens back.
//
//   g++ -std=c++20 kv_cache.cc $(pkg-config --cflags --libs attn)
#include <cstdio>
#include <memory>
#include <vector>

#include "attn/attn.h"

namespace {

constexpr std::int64_t kQueryHeads = 8, kHeads = 2, kDim = 64;

// What a model would make of its tokens: rows of q, k or v, [heads, tokens, kDim].
std::vector<float> rows(std::int64_t heads, std::int64_t first, std::int64_t tokens) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < heads * tokens * kDim; ++i)
    numbers.push_back(static_cast<float>((first * 31 + i) % 17 - 8) / 16);
  return numbers;
}

attn::TensorView view(const std::vector<float>& numbers, std::int64_t heads, std::int64_t tokens) {
  return {numbers.data(), attn::DType::f32, {1, heads, tokens, kDim}};
}

// Appends tokens, and attends with their queries.
attn::Status step(attn::KvCache* cache, attn::SequenceId sequence, std::int64_t tokens, std::vector<float>* out) {
  const std::int64_t first = cache->length(sequence);
  const std::vector<float> q = rows(kQueryHeads, first, tokens), k = rows(kHeads, first, tokens), v = k;
  ATTN_RETURN_IF_ERROR(cache->append(sequence, view(k, kHeads, tokens), view(v, kHeads, tokens)));
  out->resize(q.size());
  attn::AttentionOptions options;
  options.causal = true;
  return cache->attend({&sequence, 1}, view(q, kQueryHeads, tokens),
                       {out->data(), attn::DType::f32, {1, kQueryHeads, tokens, kDim}}, options);
}

attn::Status decode() {
  std::unique_ptr<attn::KvCache> cache;
  ATTN_RETURN_IF_ERROR(
      attn::KvCache::create({.kv_heads = kHeads, .key_dim = kDim, .type = attn::CacheType::bf16}, &cache));
  std::vector<float> out;
  attn::SequenceId first = -1, second = -1;
  ATTN_RETURN_IF_ERROR(cache->add_sequence(&first));
  ATTN_RETURN_IF_ERROR(step(cache.get(), first, 300, &out));  // the prompt
  ATTN_RETURN_IF_ERROR(cache->fork(first, &second));          // both continue it
  for (int token = 0; token < 20; ++token) {
    ATTN_RETURN_IF_ERROR(step(cache.get(), first, 1, &out));
    ATTN_RETURN_IF_ERROR(step(cache.get(), second, 1, &out));
  }
  ATTN_RETURN_IF_ERROR(cache->truncate(second, 310));  // takes 10 tokens back
  const attn::KvCacheUsage usage = cache->usage();
  std::printf("%lld and %lld tokens in %lld pages of %lld bytes\n", static_cast<long long>(cache->length(first)),
              static_cast<long long>(cache->length(second)), static_cast<long long>(usage.pages_in_use),
              static_cast<long long>(usage.page_bytes));
  return {};
}

}  // namespace

int main() {
  const attn::Status status = decode();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

// A call of the engine that a script can make: f32 tensors, row-major, on a pool that lives as long as the process.
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "attn/attn.h"

namespace {

attn::Executor& pool_of(int threads) {
  static std::unique_ptr<attn::Executor> pool;
  if (!pool || pool->threads() != threads) pool = attn::make_thread_pool(threads);
  return *pool;
}

// Sequences of one batch in a cache.
struct Cached {
  std::unique_ptr<attn::KvCache> cache;
  std::vector<attn::SequenceId> sequences;
};

}  // namespace

/// q and out [batch, heads, queries, dim], k and v [batch, kv_heads, keys, dim]. 0, or 1 where the library refuses.
extern "C" __attribute__((visibility("default"))) int attn_peer_forward(const float* q, const float* k,
                                                                        const float* v, float* out,
                                                                        const std::int64_t* sizes, int causal,
                                                                        int threads) {
  const auto [batch, heads, kv_heads, queries, keys, dim] =
      std::tuple(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]);
  attn::AttentionOptions options;
  options.causal = causal != 0;
  options.executor = &pool_of(threads);
  const attn::Status status =
      attn::forward(attn::TensorView(q, attn::DType::f32, {batch, heads, queries, dim}),
                    attn::TensorView(k, attn::DType::f32, {batch, kv_heads, keys, dim}),
                    attn::TensorView(v, attn::DType::f32, {batch, kv_heads, keys, dim}),
                    attn::OutputView(out, attn::DType::f32, {batch, heads, queries, dim}), options);
  return status.ok() ? 0 : 1;
}

/// k and v in a cache of type `type` (0 f32, 1 bf16, 2 f16, 3 q8), sizes as above; nullptr where the library refuses. Lives
/// as long as the process.
extern "C" __attribute__((visibility("default"))) void* attn_peer_cache(const float* k, const float* v,
                                                                        const std::int64_t* sizes, int type) {
  const std::int64_t batch = sizes[0], kv_heads = sizes[2], keys = sizes[4], dim = sizes[5];
  auto cached = std::make_unique<Cached>();
  const attn::KvCacheOptions options{
      .kv_heads = kv_heads, .key_dim = dim, .type = static_cast<attn::CacheType>(type)};
  if (!attn::KvCache::create(options, &cached->cache).ok()) return nullptr;
  for (std::int64_t b = 0; b < batch; ++b) {
    if (!cached->cache->add_sequence(&cached->sequences.emplace_back()).ok()) return nullptr;
    const std::int64_t first = b * kv_heads * keys * dim;
    const attn::TensorView rows(k + first, attn::DType::f32, {kv_heads, keys, dim});
    const attn::TensorView values(v + first, attn::DType::f32, {kv_heads, keys, dim});
    if (!cached->cache->append(cached->sequences.back(), rows, values).ok()) return nullptr;
  }
  return cached.release();
}

extern "C" __attribute__((visibility("default"))) int attn_peer_attend(const void* cached, const float* q,
                                                                       float* out, const std::int64_t* sizes,
                                                                       int threads) {
  const auto& kept = *static_cast<const Cached*>(cached);
  attn::AttentionOptions options;
  options.executor = &pool_of(threads);
  const attn::Status status = kept.cache->attend(
      kept.sequences, attn::TensorView(q, attn::DType::f32, {sizes[0], sizes[1], sizes[3], sizes[5]}),
      attn::OutputView(out, attn::DType::f32, {sizes[0], sizes[1], sizes[3], sizes[5]}), options);
  return status.ok() ? 0 : 1;
}

/// The multiply-add peak of `threads` threads at this moment, in GF/s; 0 where it can't be measured.
extern "C" __attribute__((visibility("default"))) double attn_peer_peak(int threads) {
  double gflops = 0;
  return attn::measure_fma(pool_of(threads), attn::DType::f32, &gflops).ok() ? gflops : 0;
}

// A call of the engine that a script can make: f32 tensors, row-major, on a pool that lives as long as the process.
#include <cstdint>
#include <memory>
#include <tuple>

#include "attn/attn.h"

namespace {

attn::Executor& pool_of(int threads) {
  static std::unique_ptr<attn::Executor> pool;
  if (!pool || pool->threads() != threads) pool = attn::make_thread_pool(threads);
  return *pool;
}

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

/// The multiply-add peak of `threads` threads at this moment, in GF/s; 0 where it can't be measured.
extern "C" __attribute__((visibility("default"))) double attn_peer_peak(int threads) {
  double gflops = 0;
  return attn::measure_fma(pool_of(threads), attn::DType::f32, &gflops).ok() ? gflops : 0;
}

// What attn bench measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn/dtype.h"

namespace attn::cli {

/// Keys to the left of a query that option "window" lets it see, beside its own.
inline constexpr std::int64_t kBenchWindow = 1024;

struct BenchShape {
  std::string name;
  DType dtype = DType::f32;  ///< of q, k and v
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, head_dim = 1;
  bool causal = false;         ///< the last query at the last key, as with a cache
  bool bf16_products = false;  ///< AttentionOptions::bf16_products
  /// One more option, by name: "mask" (dense, boolean), "bias" (dense, of dtype f32), "softcap", "alibi" or "window" (of
  /// 1,024 keys to the left); empty: none.
  std::string option = {};
  std::optional<CacheType> cache = {};  ///< keys and values lie in a KvCache of this type; absent: in plain tensors

  /// The arithmetic: f64, f32, or bf16 for f32 with 16-bit products.
  DType compute() const;

  /// Few queries read all keys and values: memory, not arithmetic, is what takes time.
  bool is_decode() const { return queries <= 16 && keys >= 1024; }

  /// Bytes of k and v, as they are stored.
  double key_value_bytes() const;

  /// Four operations a pair of query and key that see each other and a dimension.
  double flops() const;
};

/// Prefill, decode and small calls, as users have them.
std::vector<BenchShape> standard_shapes();

/// A JSON list of {name, dtype, shape: [B, H, Hkv, N, M, D], causal, compute, cache, option}. Throws Failure{2} that names the file and entry.
std::vector<BenchShape> read_shapes(const std::string& file);

}  // namespace attn::cli

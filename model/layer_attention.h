// Who attends for a model: the seam between its layers and the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attn/kv_cache.h"
#include "attn/status.h"
#include "attn/tensor.h"

namespace attn::model {

/// A model calls attend() once a layer, in ascending order: q [Hq, N, Dk], k [Hkv, N, Dk], v [Hkv, N, Dv], out [Hq, N, Dv],
/// any strides. Rows are the tokens of that call; positions are in q and k already.
class LayerAttention {
 public:
  virtual ~LayerAttention() = default;
  virtual Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                        const OutputView& out) = 0;
};

/// A whole text at once, nothing kept.
class WholeText final : public LayerAttention {
 public:
  /// `causal`: a token sees itself and those before it; otherwise all see all.
  explicit WholeText(bool causal, Executor* executor = nullptr) : causal_(causal), executor_(executor) {}
  Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                const OutputView& out) override;

 private:
  bool causal_;
  Executor* executor_;
};

/// A text that grows: a KV cache a layer, causal.
class CachedText final : public LayerAttention {
 public:
  /// Errors: as KvCache::create().
  static Status create(std::int64_t layers, const KvCacheOptions& options, std::unique_ptr<CachedText>* text);

  Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                const OutputView& out) override;

  std::int64_t length() const { return caches_.front()->length(sequences_.front()); }
  /// Bytes of the pages that hold tokens, of all layers.
  std::int64_t bytes() const;

 private:
  CachedText() = default;
  std::vector<std::unique_ptr<KvCache>> caches_;
  std::vector<SequenceId> sequences_;
};

}  // namespace attn::model

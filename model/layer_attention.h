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
  /// Tokens that came in earlier calls: the position of the next one.
  virtual std::int64_t length() const = 0;
  virtual Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                        const OutputView& out) = 0;
  /// Forgets tokens from this position on, in whatever layers have them: a model calls it where a run fails half-way.
  virtual void take_back(std::int64_t position) = 0;
};

/// A whole text at once, nothing kept.
class WholeText final : public LayerAttention {
 public:
  /// `causal`: a token sees itself and those before it; otherwise all see all.
  explicit WholeText(bool causal, Executor* executor = nullptr) : causal_(causal), executor_(executor) {}
  Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                const OutputView& out) override;
  std::int64_t length() const override { return 0; }
  void take_back(std::int64_t /*position*/) override {}

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

  std::int64_t length() const override { return caches_.back()->length(sequences_.back()); }
  void take_back(std::int64_t position) override;
  /// Bytes of the pages that hold tokens, of all layers.
  std::int64_t bytes() const;

 private:
  CachedText() = default;
  std::vector<std::unique_ptr<KvCache>> caches_;
  std::vector<SequenceId> sequences_;
};

}  // namespace attn::model

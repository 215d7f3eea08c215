#include "model/layer_attention.h"

#include "attn/attention.h"

namespace attn::model {

Status WholeText::attend(std::int64_t /*layer*/, const TensorView& q, const TensorView& k, const TensorView& v,
                         const OutputView& out) {
  AttentionOptions options;
  options.causal = causal_;
  options.executor = executor_;
  return forward(q, k, v, out, options);
}

Status CachedText::create(std::int64_t layers, const KvCacheOptions& options, std::unique_ptr<CachedText>* text) {
  std::unique_ptr<CachedText> created(new CachedText);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    SequenceId sequence = 0;
    ATTN_RETURN_IF_ERROR(KvCache::create(options, &created->caches_.emplace_back()));
    ATTN_RETURN_IF_ERROR(created->caches_.back()->add_sequence(&sequence));
    created->sequences_.push_back(sequence);
  }
  *text = std::move(created);
  return {};
}

Status CachedText::attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                          const OutputView& out) {
  KvCache& cache = *caches_[static_cast<std::size_t>(layer)];
  const SequenceId sequence = sequences_[static_cast<std::size_t>(layer)];
  ATTN_RETURN_IF_ERROR(cache.append(sequence, k, v));
  AttentionOptions options;
  options.causal = true;
  options.executor = cache.options().executor;
  return cache.attend({&sequence, 1}, q, out, options);
}

void CachedText::take_back(std::int64_t position) {
  for (std::size_t layer = 0; layer < caches_.size(); ++layer) {
    // The one thing that it could say is that the position is beyond the length.
    static_cast<void>(caches_[layer]->truncate(sequences_[layer], position));
  }
}

std::int64_t CachedText::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& cache : caches_) {
    const KvCacheUsage usage = cache->usage();
    bytes += usage.pages_in_use * usage.page_bytes;
  }
  return bytes;
}

}  // namespace attn::model

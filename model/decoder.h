// Llama-type decoders from GGUF files: the shortest honest code around the engine.
//
// Each layer: RMSNorm, q k v, rotary positions on adjacent pairs, grouped heads that attend, output product, residual;
// RMSNorm, SwiGLU, residual. Source: Llama (Touvron et al., 2023).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attn/executor.h"
#include "attn/status.h"
#include "formats/gguf.h"
#include "model/matrix.h"
#include "model/text_model.h"

namespace attn::model {

struct DecoderShape {
  std::int64_t layers = 0, width = 0, heads = 0, kv_heads = 0, head_dim = 0, hidden = 0, vocabulary = 0;
  std::int64_t context = 0;  ///< positions that it was trained for
  float norm_epsilon = 0;
  std::vector<double> rope_frequencies;  ///< of each pair, radians a position
};

class Decoder final : public TextModel {
 public:
  /// Packs the weights of general.architecture "llama". The file stays mapped: token embeddings are read from it. Errors:
  /// another architecture; facts or tensors that are missing, do not fit together or are not known here; memory that can't
  /// be had.
  static Status load(formats::Gguf gguf, Executor& executor, std::unique_ptr<Decoder>* decoder);
  ~Decoder() override;

  const DecoderShape& shape() const { return shape_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  Executor& executor() const override { return executor_; }
  std::int64_t layers() const override { return shape_.layers; }
  std::int64_t heads() const override { return shape_.heads; }
  std::int64_t width() const override { return shape_.width; }
  std::int64_t context() const override { return shape_.context; }
  bool causal() const override { return true; }

  /// Of the packed weights.
  std::int64_t weight_bytes() const;

  /// Options of a cache for one layer.
  KvCacheOptions cache_options(CacheType type) const;

  /// `rows` are ready for logits().
  Status run(std::span<const Token> tokens, LayerAttention& attention, std::vector<float>* rows) const override;

  /// `logits` [rows][vocabulary] of rows [rows][width] from run(). Errors: memory that can't be had.
  Status logits(const float* rows, std::int64_t count, float* logits) const;

 private:
  struct Layer;
  struct Work;
  Decoder(formats::Gguf gguf, Executor& executor);
  Status read_weights();
  Status run_layers(std::span<const Token> tokens, LayerAttention& attention, Work& work) const;
  Status run_layer(std::int64_t index, LayerAttention& attention, Work& work) const;
  Status embed(std::span<const Token> tokens, std::vector<float>* rows) const;

  formats::Gguf gguf_;
  Executor& executor_;
  DecoderShape shape_;
  std::unique_ptr<Tokenizer> tokenizer_;
  WeightMemory memory_;
  const formats::GgufTensor* embeddings_ = nullptr;
  std::vector<Layer> layers_;
  std::vector<float> output_norm_;
  Matrix output_;
};

}  // namespace attn::model

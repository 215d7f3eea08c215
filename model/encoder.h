// BERT-type encoders from a folder of Hugging Face's: config.json, model.safetensors, vocab.txt.
//
// Embeddings of word, position and type, normalised; in each layer q k v with biases, heads that all see all, output product,
// residual, LayerNorm; GELU between two products, residual, LayerNorm. Source: BERT (Devlin et al., 2019).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/tensor.h"
#include "model/matrix.h"
#include "model/text_model.h"

namespace attn::model {

struct EncoderShape {
  std::int64_t layers = 0, width = 0, heads = 0, hidden = 0, vocabulary = 0, context = 0, types = 0;
  float norm_epsilon = 0;
};

class Encoder final : public TextModel {
 public:
  /// Reads and packs the weights, as f32. Errors: files or tensors that are missing or do not fit together; a model or
  /// activation of another kind; memory that can't be had.
  static Status load(const std::string& folder, Executor& executor, std::unique_ptr<Encoder>* encoder);
  ~Encoder() override;

  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  Executor& executor() const override { return executor_; }
  std::int64_t layers() const override { return shape_.layers; }
  std::int64_t heads() const override { return shape_.heads; }
  std::int64_t width() const override { return shape_.width; }
  std::int64_t context() const override { return shape_.context; }
  bool causal() const override { return false; }

  /// A token sees all others, so a text is run whole: attention.length() is 0.
  Status run(std::span<const Token> tokens, LayerAttention& attention, std::vector<float>* rows) const override;

 private:
  struct Layer;
  struct Reader;
  explicit Encoder(Executor& executor);
  Status read_weights(const std::string& folder);
  Status embed(std::span<const Token> tokens, std::vector<float>* x) const;
  Status run_layer(const Layer& layer, std::int64_t index, std::int64_t rows, LayerAttention& attention,
                   std::vector<float>* x) const;

  Executor& executor_;
  EncoderShape shape_;
  std::unique_ptr<Tokenizer> tokenizer_;
  WeightMemory memory_;
  formats::Tensor words_;  // [vocabulary, width], in the file
  std::vector<float> positions_, type_, embedding_weight_, embedding_bias_;
  std::vector<Layer> layers_;
};

/// The sentence's embedding: the mean of its tokens' rows ([tokens][width]), divided by its length. Source: Sentence-BERT
/// (Reimers and Gurevych, 2019).
std::vector<float> mean_pooled(std::span<const float> rows, std::int64_t width);

}  // namespace attn::model

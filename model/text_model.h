// What every model of texts can do, whatever its kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attn/executor.h"
#include "attn/status.h"
#include "model/layer_attention.h"
#include "model/tokenizer.h"

namespace attn::model {

class TextModel {
 public:
  virtual ~TextModel() = default;

  virtual const Tokenizer& tokenizer() const = 0;
  virtual Executor& executor() const = 0;
  virtual std::int64_t layers() const = 0;
  virtual std::int64_t heads() const = 0;
  virtual std::int64_t width() const = 0;
  virtual std::int64_t context() const = 0;  ///< positions that it was trained for
  virtual bool causal() const = 0;           ///< a token sees itself and those before it alone

  /// Runs tokens through all layers, which attend through `attention`; the first is at position attention.length(). `rows`
  /// becomes [tokens][width], after the last norm. A row's bits do not depend on how many tokens are in one call, as far
  /// as the model is causal. O(tokens · weights), and attention. Errors, which leave `attention` as it was: a token out of
  /// range; those of `attention`; memory that can't be had. Positions beyond context() are computed all the same by a decoder,
  /// and refused by an encoder, which has no embedding for them.
  virtual Status run(std::span<const Token> tokens, LayerAttention& attention, std::vector<float>* rows) const = 0;
};

/// A Llama-type decoder where `path` is a GGUF file, a BERT-type encoder where it is a folder with config.json,
/// model.safetensors and vocab.txt. Errors: those of Decoder::load() and Encoder::load().
Status load_model(const std::string& path, Executor& executor, std::unique_ptr<TextModel>* model);

}  // namespace attn::model

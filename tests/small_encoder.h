// A small random encoder as a folder, and its forward pass in float64.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/tokenizer.h"

namespace attn::model {

struct SmallEncoder {
  std::int64_t layers = 2, width = 24, heads = 3, hidden = 40, context = 64;
  std::vector<std::string> vocabulary;
  std::map<std::string, std::vector<float>> tensors;
  std::map<std::string, std::vector<std::int64_t>> shapes;

  /// Random weights over this vocabulary; [PAD], [UNK], [CLS] and [SEP] come first.
  SmallEncoder(std::vector<std::string> words, std::uint64_t seed);

  std::string config() const;
  std::string safetensors(const std::string& prefix = "") const;
  std::string vocabulary_text() const;
  void write(const std::string& folder, const std::string& prefix = "") const;

  /// [tokens][width].
  std::vector<double> rows_in_f64(std::span<const Token> tokens) const;
};

}  // namespace attn::model

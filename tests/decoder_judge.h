// A Llama-type forward pass in float64, written as the formulas are: what the engine's models are judged by.
#pragma once

#include <span>
#include <vector>

#include "formats/gguf.h"
#include "model/decoder.h"

namespace attn::model {

/// Logits [tokens][vocabulary] of a text, from the file's own facts and tensors. Of `shape` it takes the sizes and the norms'
/// epsilon, and it shares no arithmetic with the model.
std::vector<double> logits_in_f64(const formats::Gguf& gguf, const DecoderShape& shape,
                                  std::span<const Token> tokens);

}  // namespace attn::model

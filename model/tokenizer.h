// Text to token numbers and back, as a model's own file says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/status.h"
#include "formats/gguf.h"

namespace attn::model {

using Token = std::int32_t;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The tokens of a text, the begin token in front where the model wants one. Any bytes will do: what is no valid UTF-8, or
  /// no token, goes byte by byte. The text of a control token ("<|im_start|>") becomes that token. O(n log n).
  virtual std::vector<Token> encode(std::string_view text) const = 0;

  /// The text of tokens; numbers that are no token, and control tokens, are left out. The blank that encode() puts in
  /// front of a text is taken off the first one.
  virtual std::string decode(std::span<const Token> tokens) const = 0;

  /// One token as a label that fits into a line: blanks are shown as ▁, line breaks as \n, bytes that are no character of their
  /// own as <0xE2>. Empty for numbers that are no token.
  virtual std::string label(Token token) const = 0;

  /// A piece of texts: neither control token nor unknown, unused or a single byte.
  virtual bool is_ordinary(Token token) const = 0;

  virtual Token size() const = 0;
  virtual std::optional<Token> begin() const = 0;
  virtual std::optional<Token> end() const = 0;
};

/// The tokenizer that a GGUF file describes under tokenizer.ggml: model "llama" (pieces with scores and byte tokens, as
/// SentencePiece has them) or "gpt2" (merged bytes of words). Errors: another model, or facts that are missing or
/// contradict each other.
Status read_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer);

}  // namespace attn::model

// The tokens of a GGUF file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "attn/status.h"
#include "formats/gguf.h"
#include "model/tokenizer.h"

namespace attn::model {

/// GGUF's numbers for kinds of tokens.
enum class TokenKind : std::uint8_t { normal = 1, unknown = 2, control = 3, user = 4, unused = 5, byte = 6 };

struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<TokenKind> kinds;
  std::unordered_map<std::string, Token> numbers;  ///< of normal and user tokens
  std::optional<Token> begin, end, unknown;
  bool puts_begin = false, puts_blank = false;
  std::unordered_map<std::string, Token> special;  ///< control, unknown and user tokens, by their text
  std::vector<std::size_t> special_sizes;          ///< lengths of those texts, the longest first

  Token size() const { return static_cast<Token>(texts.size()); }
  bool has(Token token) const { return token >= 0 && token < size(); }
  std::optional<Token> find(std::string_view text) const;
};

/// What is put in front of a text where the file does not say so.
struct InFront {
  bool begin_token = false, blank = false;
};

/// Reads tokenizer.ggml.*. Errors: facts that are missing or contradict each other.
Status read_vocabulary(const formats::Gguf& gguf, InFront otherwise, Vocabulary* vocabulary);

/// A stretch of a text: either a special token written out, or text between those.
struct Stretch {
  std::string_view text;
  std::optional<Token> special;
};

/// O(n · different lengths of special tokens · the longest).
std::vector<Stretch> split_at_special(const Vocabulary& vocabulary, std::string_view text);

}  // namespace attn::model

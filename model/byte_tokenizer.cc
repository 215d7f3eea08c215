// The tokenizer of GGUF's "gpt2": words, whose bytes are merged in a learned order.
// Source: GPT-2's byte-level byte-pair encoding (Radford et al., 2019).
#include <array>

#include "model/facts.h"
#include "model/gguf_tokenizers.h"
#include "model/merging.h"
#include "model/unicode.h"
#include "model/words.h"

namespace attn::model {
namespace {

// Texts of tokens hold a printable character for each byte: itself where it is printable, and otherwise one of those from
// U+0100 on, in ascending order.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      const int code = printable ? byte : next++;
      characters_[static_cast<std::size_t>(byte)] =
          code < 0x80 ? std::string(1, static_cast<char>(code))
                      : std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
      bytes_.emplace(code, static_cast<char>(byte));
    }
  }

  const std::string& character(unsigned char byte) const { return characters_[byte]; }

  // What is no character of the alphabet stays as it is.
  std::string bytes_of(std::string_view text) const {
    std::string bytes;
    while (!text.empty()) {
      const Character character = first_character(text);
      const auto found = bytes_.find(character.code);
      if (found != bytes_.end()) {
        bytes += found->second;
      } else {
        bytes += text.substr(0, character.bytes);
      }
      text.remove_prefix(character.bytes);
    }
    return bytes;
  }

 private:
  std::array<std::string, 256> characters_;
  std::unordered_map<std::int32_t, char> bytes_;
};

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer(Vocabulary vocabulary, const std::vector<std::string>& merges, WordRule rule)
      : vocabulary_(std::move(vocabulary)), rule_(rule) {
    for (std::size_t i = 0; i < merges.size(); ++i) ranks_.emplace(merges[i], static_cast<int>(i));
  }

  std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens;
    if (vocabulary_.puts_begin && vocabulary_.begin) tokens.push_back(*vocabulary_.begin);
    const std::string prefixed =
        vocabulary_.puts_blank && !text.empty() ? " " + std::string(text) : std::string(text);
    for (const Stretch& stretch : split_at_special(vocabulary_, prefixed)) {
      if (stretch.special) {
        tokens.push_back(*stretch.special);
      } else {
        for (const std::string_view word : split_words(stretch.text, rule_)) add_word(word, &tokens);
      }
    }
    return tokens;
  }

  std::string decode(std::span<const Token> tokens) const override {
    std::string result;
    for (const Token token : tokens) {
      if (vocabulary_.has(token) && kind(token) != TokenKind::control && kind(token) != TokenKind::unused)
        result += bytes_of(token);
    }
    return vocabulary_.puts_blank && result.starts_with(' ') ? result.substr(1) : result;
  }

  std::string label(Token token) const override {
    return vocabulary_.has(token) ? printable_label(bytes_of(token)) : "";
  }

  bool is_ordinary(Token token) const override {
    return vocabulary_.has(token) && kind(token) == TokenKind::normal;
  }
  Token size() const override { return vocabulary_.size(); }
  std::optional<Token> begin() const override { return vocabulary_.begin; }
  std::optional<Token> end() const override { return vocabulary_.end; }

 private:
  TokenKind kind(Token token) const { return vocabulary_.kinds[static_cast<std::size_t>(token)]; }

  // Llama 3: a word that is a token is that token, whatever its merges would make of it.
  bool takes_whole_words() const { return rule_ == WordRule::llama3; }

  // Special tokens are written as they are.
  std::string bytes_of(Token token) const {
    const std::string& text = vocabulary_.texts[static_cast<std::size_t>(token)];
    return kind(token) == TokenKind::normal ? alphabet_.bytes_of(text) : text;
  }

  void add_word(std::string_view word, std::vector<Token>* tokens) const {
    std::string spelt;
    for (const char byte : word) spelt += alphabet_.character(static_cast<unsigned char>(byte));
    if (takes_whole_words()) {
      if (const auto whole = vocabulary_.find(spelt)) return tokens->push_back(*whole);
    }
    const std::vector<std::string_view> characters = characters_of(spelt);
    const auto score = [&](std::string_view left, std::string_view right) -> std::optional<double> {
      const auto found = ranks_.find(std::string(left) + " " + std::string(right));
      if (found == ranks_.end()) return std::nullopt;
      return -found->second;
    };
    for (const std::string_view piece : merge_pieces(characters, score)) add_piece(piece, tokens);
  }

  // A piece that is no token goes character by character.
  void add_piece(std::string_view piece, std::vector<Token>* tokens) const {
    if (const auto found = vocabulary_.find(piece)) return tokens->push_back(*found);
    while (!piece.empty()) {
      const std::size_t bytes = first_character(piece).bytes;
      const auto found = vocabulary_.find(piece.substr(0, bytes));
      if (found) {
        tokens->push_back(*found);
      } else if (vocabulary_.unknown) {
        tokens->push_back(*vocabulary_.unknown);
      }
      piece.remove_prefix(bytes);
    }
  }

  Vocabulary vocabulary_;
  WordRule rule_;
  ByteAlphabet alphabet_;
  std::unordered_map<std::string, int> ranks_;  // "left right": the lower, the earlier it is joined
};

}  // namespace

Status read_byte_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer) {
  Vocabulary vocabulary;
  const std::vector<std::string>* merges = nullptr;
  const std::string* rule_name = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.merges", &merges));
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.pre", &rule_name));
  const auto rule = word_rule_named(*rule_name);
  if (!rule) {
    return Status::error("model: tokenizer.ggml.pre " + formats::in_quotes(*rule_name) +
                         " is not available in this version; \"gpt-2\", \"smollm\" and \"llama-bpe\" are");
  }
  // Files of Llama 3 need not say that they want one.
  ATTN_RETURN_IF_ERROR(read_vocabulary(gguf, {.begin_token = *rule == WordRule::llama3}, &vocabulary));
  *tokenizer = std::make_unique<ByteTokenizer>(std::move(vocabulary), *merges, *rule);
  return {};
}

Status read_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer) {
  const std::string* name = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.model", &name));
  if (*name == "llama") return read_piece_tokenizer(gguf, tokenizer);
  if (*name == "gpt2") return read_byte_tokenizer(gguf, tokenizer);
  return Status::error("model: the tokenizer " + formats::in_quotes(*name) +
                       " is not available in this version; \"llama\" and \"gpt2\" are");
}

}  // namespace attn::model

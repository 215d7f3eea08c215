// The tokenizer of GGUF's "llama": pieces that have scores, merged best first, and a token for each byte.
// Source: SentencePiece's byte-pair mode (Kudo and Richardson, 2018), as llama.cpp reads it from GGUF.
#include <algorithm>
#include <cmath>

#include "model/facts.h"
#include "model/gguf_tokenizers.h"
#include "model/merging.h"
#include "model/unicode.h"

namespace attn::model {
namespace {

constexpr std::string_view kBlank = "\u2581";  // stands for a blank within pieces

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(from)) {
      result += to;
      at += from.size();
    } else {
      result += text[at++];
    }
  }
  return result;
}

// "<0x0A>" is byte 10; −1 for other texts.
int byte_of(const std::string& text) {
  if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with('>')) return -1;
  int value = 0;
  for (const char digit : text.substr(3, 2)) {
    const std::size_t nibble = std::string_view("0123456789ABCDEF").find(digit);
    if (nibble == std::string_view::npos) return -1;
    value = value * 16 + static_cast<int>(nibble);
  }
  return value;
}

class PieceTokenizer final : public Tokenizer {
 public:
  PieceTokenizer(Vocabulary vocabulary, std::vector<double> scores)
      : vocabulary_(std::move(vocabulary)), scores_(std::move(scores)), bytes_(256, -1) {
    for (Token token = 0; token < size(); ++token) {
      if (kind(token) == TokenKind::byte) bytes_[static_cast<std::size_t>(byte_of(text(token)))] = token;
    }
  }

  std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens;
    if (vocabulary_.puts_begin && vocabulary_.begin) tokens.push_back(*vocabulary_.begin);
    for (const Stretch& stretch : split_at_special(vocabulary_, text)) {
      if (stretch.special) {
        tokens.push_back(*stretch.special);
      } else {
        add_text(stretch.text, &tokens);
      }
    }
    return tokens;
  }

  std::string decode(std::span<const Token> tokens) const override {
    std::string result;
    for (const Token token : tokens) {
      if (!vocabulary_.has(token) || kind(token) == TokenKind::control || kind(token) == TokenKind::unused)
        continue;
      result += bytes_of(token);
    }
    return vocabulary_.puts_blank && result.starts_with(' ') ? result.substr(1) : result;
  }

  std::string label(Token token) const override {
    if (!vocabulary_.has(token)) return "";
    return kind(token) == TokenKind::byte ? text(token) : printable_label(bytes_of(token));
  }

  bool is_ordinary(Token token) const override {
    return vocabulary_.has(token) && kind(token) == TokenKind::normal;
  }
  Token size() const override { return vocabulary_.size(); }
  std::optional<Token> begin() const override { return vocabulary_.begin; }
  std::optional<Token> end() const override { return vocabulary_.end; }

 private:
  const std::string& text(Token token) const { return vocabulary_.texts[static_cast<std::size_t>(token)]; }
  TokenKind kind(Token token) const { return vocabulary_.kinds[static_cast<std::size_t>(token)]; }

  std::string bytes_of(Token token) const {
    if (kind(token) == TokenKind::byte) return std::string(1, static_cast<char>(byte_of(text(token))));
    return replaced(text(token), kBlank, " ");
  }

  void add_text(std::string_view text, std::vector<Token>* tokens) const {
    const std::string prepared = (vocabulary_.puts_blank ? std::string(kBlank) : "") + replaced(text, " ", kBlank);
    // Two pieces may be joined where the whole is a piece, and its score says how early.
    const auto score = [&](std::string_view left, std::string_view right) -> std::optional<double> {
      const auto whole = vocabulary_.find(std::string_view(left.data(), left.size() + right.size()));
      if (!whole) return std::nullopt;
      return scores_[static_cast<std::size_t>(*whole)];
    };
    for (const std::string_view piece : merge_pieces(characters_of(prepared), score)) add_piece(piece, tokens);
  }

  void add_piece(std::string_view piece, std::vector<Token>* tokens) const {
    if (const auto found = vocabulary_.find(piece)) return tokens->push_back(*found);
    for (const char byte : piece) {
      const Token token = bytes_[static_cast<unsigned char>(byte)];
      if (token >= 0) {
        tokens->push_back(token);
      } else if (vocabulary_.unknown) {
        tokens->push_back(*vocabulary_.unknown);
      }
    }
  }

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  std::vector<Token> bytes_;
};

Status check_bytes(const Vocabulary& vocabulary) {
  for (std::size_t i = 0; i < vocabulary.texts.size(); ++i) {
    if (vocabulary.kinds[i] == TokenKind::byte && byte_of(vocabulary.texts[i]) < 0) {
      return Status::error("model: token " + std::to_string(i) +
                           " is of a byte, but not written as <0x0A>; fetch or convert the file again");
    }
  }
  return {};
}

}  // namespace

Status read_piece_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer) {
  Vocabulary vocabulary;
  const std::vector<double>* scores = nullptr;
  ATTN_RETURN_IF_ERROR(read_vocabulary(gguf, {.begin_token = true, .blank = true}, &vocabulary));
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.scores", &scores));
  if (scores->size() != vocabulary.texts.size()) {
    return Status::error("model: " + std::to_string(vocabulary.texts.size()) + " tokens, " +
                         std::to_string(scores->size()) +
                         " scores; each token has one; fetch or convert the file again");
  }
  if (!std::all_of(scores->begin(), scores->end(), [](double score) { return std::isfinite(score); }))
    return Status::error("model: a token's score is not finite; fetch or convert the file again");
  ATTN_RETURN_IF_ERROR(check_bytes(vocabulary));
  *tokenizer = std::make_unique<PieceTokenizer>(std::move(vocabulary), *scores);
  return {};
}

}  // namespace attn::model

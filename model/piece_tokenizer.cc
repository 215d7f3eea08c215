// The tokenizer of GGUF's "llama": pieces that have scores, merged best first, and a token for each byte.
// Source: SentencePiece's byte-pair mode (Kudo and Richardson, 2018), as llama.cpp reads it from GGUF.
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "model/facts.h"
#include "model/tokenizer.h"

namespace attn::model {
namespace {

constexpr std::string_view kBlank = "\u2581";  // stands for a blank within pieces

// GGUF's numbers for kinds of tokens.
enum class Kind : std::int64_t { normal = 1, unknown = 2, control = 3, user = 4, unused = 5, byte = 6 };

struct Piece {
  std::string text;
  double score = 0;
  Kind kind = Kind::normal;
};

// Bytes of the UTF-8 character that starts with `first`; 1 for what starts none.
std::size_t character_bytes(unsigned char first) {
  if (first >= 0xF0 && first < 0xF8) return 4;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xC0 && first < 0xE0 ? 2 : 1;
}

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

// A stretch of the text that is one piece so far, in a list of its neighbours.
struct Stretch {
  std::string_view text;
  int before = -1, after = -1;
};

// Two neighbours that could be one piece.
struct Merge {
  double score;
  int left, right;
  std::size_t bytes;  // of both, when they were found: other than now if one has grown or is gone

  // Best score first, leftmost among equals.
  bool operator<(const Merge& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

class PieceTokenizer final : public Tokenizer {
 public:
  PieceTokenizer(std::vector<Piece> pieces, std::optional<Token> begin, std::optional<Token> end,
                 std::optional<Token> unknown, bool puts_begin, bool puts_blank)
      : pieces_(std::move(pieces)),
        begin_(begin),
        end_(end),
        unknown_(unknown),
        puts_begin_(puts_begin),
        puts_blank_(puts_blank),
        bytes_(256, -1) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto token = static_cast<Token>(i);
      if (pieces_[i].kind == Kind::byte) {
        bytes_[byte_of(pieces_[i])] = token;
      } else if (pieces_[i].kind == Kind::normal || pieces_[i].kind == Kind::user) {
        numbers_.emplace(pieces_[i].text, token);
      }
    }
  }

  std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens;
    if (puts_begin_ && begin_) tokens.push_back(*begin_);
    if (text.empty()) return tokens;
    const std::string prepared = (puts_blank_ ? std::string(kBlank) : "") + replaced(text, " ", kBlank);
    for (const std::string_view piece : merged(prepared)) add(piece, &tokens);
    return tokens;
  }

  std::string decode(std::span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens) {
      if (token < 0 || token >= size()) continue;
      const Piece& piece = pieces_[static_cast<std::size_t>(token)];
      if (piece.kind == Kind::control || piece.kind == Kind::unused) continue;
      text += piece.kind == Kind::byte ? std::string(1, static_cast<char>(byte_of(piece))) : piece.text;
    }
    text = replaced(text, kBlank, " ");
    return puts_blank_ && text.starts_with(' ') ? text.substr(1) : text;
  }

  std::string label(Token token) const override {
    return token < 0 || token >= size() ? "" : pieces_[static_cast<std::size_t>(token)].text;
  }

  Token size() const override { return static_cast<Token>(pieces_.size()); }
  std::optional<Token> begin() const override { return begin_; }
  std::optional<Token> end() const override { return end_; }

  /// "<0x0A>" is byte 10; −1 for other texts.
  static int byte_of(const Piece& piece) {
    unsigned value = 0;
    for (const char digit : piece.text.size() == 6 ? piece.text.substr(3, 2) : "g") {
      const std::size_t nibble = std::string_view("0123456789ABCDEF").find(digit);
      if (nibble == std::string_view::npos) return -1;
      value = value * 16 + static_cast<unsigned>(nibble);
    }
    return piece.text.starts_with("<0x") && piece.text.ends_with('>') ? static_cast<int>(value) : -1;
  }

 private:
  void consider(const std::vector<Stretch>& stretches, int left, int right,
                std::priority_queue<Merge>* merges) const {
    if (left < 0 || right < 0) return;
    const std::string_view a = stretches[left].text, b = stretches[right].text;
    const auto found = numbers_.find(std::string(a.data(), a.size() + b.size()));
    if (found == numbers_.end()) return;
    merges->push({pieces_[static_cast<std::size_t>(found->second)].score, left, right, a.size() + b.size()});
  }

  // Characters, joined as long as a join is a piece.
  std::vector<std::string_view> merged(std::string_view text) const {
    std::vector<Stretch> stretches;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t bytes = std::min(character_bytes(static_cast<unsigned char>(text[at])), text.size() - at);
      const int index = static_cast<int>(stretches.size());
      stretches.push_back({text.substr(at, bytes), index - 1, index + 1});
      at += bytes;
    }
    stretches.back().after = -1;
    std::priority_queue<Merge> merges;
    for (int i = 0; i + 1 < static_cast<int>(stretches.size()); ++i) consider(stretches, i, i + 1, &merges);
    while (!merges.empty()) {
      const Merge best = merges.top();
      merges.pop();
      Stretch &left = stretches[best.left], &right = stretches[best.right];
      if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != best.bytes) continue;
      left.text = std::string_view(left.text.data(), best.bytes);
      right.text = {};
      left.after = right.after;
      if (right.after >= 0) stretches[right.after].before = best.left;
      consider(stretches, left.before, best.left, &merges);
      consider(stretches, best.left, left.after, &merges);
    }
    std::vector<std::string_view> pieces;
    for (int i = 0; i >= 0; i = stretches[i].after) pieces.push_back(stretches[i].text);
    return pieces;
  }

  void add(std::string_view piece, std::vector<Token>* tokens) const {
    const auto found = numbers_.find(std::string(piece));
    if (found != numbers_.end()) return tokens->push_back(found->second);
    for (const char byte : piece) {
      const Token token = bytes_[static_cast<unsigned char>(byte)];
      if (token >= 0) {
        tokens->push_back(token);
      } else if (unknown_) {
        tokens->push_back(*unknown_);
      }
    }
  }

  std::vector<Piece> pieces_;
  std::optional<Token> begin_, end_, unknown_;
  bool puts_begin_, puts_blank_;
  std::vector<Token> bytes_;
  std::unordered_map<std::string, Token> numbers_;
};

Status read_pieces(const formats::Gguf& gguf, std::vector<Piece>* pieces) {
  const std::vector<std::string>* texts = nullptr;
  const std::vector<double>* scores = nullptr;
  const std::vector<std::int64_t>* kinds = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.tokens", &texts));
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.scores", &scores));
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.token_type", &kinds));
  if (texts->empty() || texts->size() != scores->size() || texts->size() != kinds->size()) {
    return Status::error("model: " + std::to_string(texts->size()) + " tokens, " + std::to_string(scores->size()) +
                         " scores and " + std::to_string(kinds->size()) +
                         " kinds; each token has one of both; fetch or convert the file again");
  }
  for (std::size_t i = 0; i < texts->size(); ++i) {
    pieces->push_back({(*texts)[i], (*scores)[i], static_cast<Kind>((*kinds)[i])});
    if (pieces->back().kind == Kind::byte && PieceTokenizer::byte_of(pieces->back()) < 0) {
      return Status::error("model: token " + std::to_string(i) +
                           " is of a byte, but not written as <0x0A>; fetch or convert the file again");
    }
  }
  return {};
}

// A token's number under `key`; none where the file has none.
Status read_token(const formats::Gguf& gguf, const std::string& key, std::size_t tokens,
                  std::optional<Token>* token) {
  const auto* number = find_fact<std::int64_t>(gguf, key);
  if (!number) return {};
  if (*number < 0 || *number >= static_cast<std::int64_t>(tokens)) {
    return Status::error("model: " + key + " is " + std::to_string(*number) + ", but there are " +
                         std::to_string(tokens) + " tokens; fetch or convert the file again");
  }
  *token = static_cast<Token>(*number);
  return {};
}

bool truth_or(const formats::Gguf& gguf, std::string_view key, bool otherwise) {
  const bool* truth = find_fact<bool>(gguf, key);
  return truth ? *truth : otherwise;
}

}  // namespace

Status read_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer) {
  const std::string* name = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.model", &name));
  if (*name != "llama") {
    return Status::error("model: the tokenizer " + formats::in_quotes(*name) +
                         " is not available in this version; give a model with \"llama\"");
  }
  std::vector<Piece> pieces;
  ATTN_RETURN_IF_ERROR(read_pieces(gguf, &pieces));
  std::optional<Token> begin, end, unknown;
  ATTN_RETURN_IF_ERROR(read_token(gguf, "tokenizer.ggml.bos_token_id", pieces.size(), &begin));
  ATTN_RETURN_IF_ERROR(read_token(gguf, "tokenizer.ggml.eos_token_id", pieces.size(), &end));
  ATTN_RETURN_IF_ERROR(read_token(gguf, "tokenizer.ggml.unknown_token_id", pieces.size(), &unknown));
  *tokenizer = std::make_unique<PieceTokenizer>(std::move(pieces), begin, end, unknown,
                                                truth_or(gguf, "tokenizer.ggml.add_bos_token", true),
                                                truth_or(gguf, "tokenizer.ggml.add_space_prefix", true));
  return {};
}

}  // namespace attn::model

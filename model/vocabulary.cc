#include "model/vocabulary.h"

#include <functional>
#include <set>

#include "model/facts.h"

namespace attn::model {
namespace {

// A token's number under `key`; none where the file has none.
Status read_token(const formats::Gguf& gguf, const std::string& key, Token tokens, std::optional<Token>* token) {
  std::optional<std::int64_t> number;
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, key, &number));
  if (!number) return {};
  if (*number < 0 || *number >= tokens) {
    return Status::error("model: " + key + " is " + std::to_string(*number) + ", but there are " +
                         std::to_string(tokens) + " tokens; fetch or convert the file again");
  }
  *token = static_cast<Token>(*number);
  return {};
}

Status read_truth(const formats::Gguf& gguf, const std::string& key, bool otherwise, bool* truth) {
  std::optional<bool> said;
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, key, &said));
  *truth = said.value_or(otherwise);
  return {};
}

void collect_special(Vocabulary* vocabulary) {
  std::set<std::size_t, std::greater<>> sizes;
  for (Token token = 0; token < vocabulary->size(); ++token) {
    const TokenKind kind = vocabulary->kinds[static_cast<std::size_t>(token)];
    const std::string& text = vocabulary->texts[static_cast<std::size_t>(token)];
    const bool special = kind == TokenKind::control || kind == TokenKind::unknown || kind == TokenKind::user;
    if (!special || text.empty()) continue;
    vocabulary->special.emplace(text, token);
    sizes.insert(text.size());
  }
  vocabulary->special_sizes.assign(sizes.begin(), sizes.end());
}

}  // namespace

std::optional<Token> Vocabulary::find(std::string_view text) const {
  const auto found = numbers.find(std::string(text));
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

Status read_vocabulary(const formats::Gguf& gguf, InFront otherwise, Vocabulary* vocabulary) {
  const std::vector<std::string>* texts = nullptr;
  const std::vector<std::int64_t>* kinds = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.tokens", &texts));
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "tokenizer.ggml.token_type", &kinds));
  if (texts->empty() || texts->size() != kinds->size()) {
    return Status::error("model: " + std::to_string(texts->size()) + " tokens and " +
                         std::to_string(kinds->size()) +
                         " kinds; each token has one; fetch or convert the file again");
  }
  vocabulary->texts = *texts;
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const std::int64_t kind = (*kinds)[i];
    if (kind < 1 || kind > 6) {
      return Status::error("model: token " + std::to_string(i) + " is of kind " + std::to_string(kind) +
                           "; there are kinds 1 to 6; fetch or convert the file again");
    }
    vocabulary->kinds.push_back(static_cast<TokenKind>(kind));
    if (kind == 1 || kind == 4) vocabulary->numbers.emplace((*texts)[i], static_cast<Token>(i));
  }
  const Token size = vocabulary->size();
  ATTN_RETURN_IF_ERROR(read_token(gguf, "tokenizer.ggml.bos_token_id", size, &vocabulary->begin));
  ATTN_RETURN_IF_ERROR(read_token(gguf, "tokenizer.ggml.eos_token_id", size, &vocabulary->end));
  ATTN_RETURN_IF_ERROR(read_token(gguf, "tokenizer.ggml.unknown_token_id", size, &vocabulary->unknown));
  ATTN_RETURN_IF_ERROR(
      read_truth(gguf, "tokenizer.ggml.add_bos_token", otherwise.begin_token, &vocabulary->puts_begin));
  ATTN_RETURN_IF_ERROR(
      read_truth(gguf, "tokenizer.ggml.add_space_prefix", otherwise.blank, &vocabulary->puts_blank));
  collect_special(vocabulary);
  return {};
}

std::vector<Stretch> split_at_special(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<Stretch> stretches;
  std::size_t start = 0;
  const auto special_at = [&](std::size_t at) -> std::optional<Token> {
    for (const std::size_t size : vocabulary.special_sizes) {
      if (size > text.size() - at) continue;
      const auto found = vocabulary.special.find(std::string(text.substr(at, size)));
      if (found != vocabulary.special.end()) return found->second;
    }
    return std::nullopt;
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<Token> token = special_at(at);
    if (!token) {
      ++at;
      continue;
    }
    if (at > start) stretches.push_back({text.substr(start, at - start), std::nullopt});
    const std::size_t bytes = vocabulary.texts[static_cast<std::size_t>(*token)].size();
    stretches.push_back({text.substr(at, bytes), token});
    start = at += bytes;
  }
  if (start < text.size()) stretches.push_back({text.substr(start), std::nullopt});
  return stretches;
}

}  // namespace attn::model

// Texts cut into words, before byte-level merging: what models call their pre-tokenizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace attn::model {

/// The rules, each a regular expression of the original; here written out.
enum class WordRule : std::uint8_t {
  gpt2,    ///< 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  digits,  ///< every digit alone, and the rest as gpt2
  llama3,  ///< (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
};

/// The rule that GGUF calls so under tokenizer.ggml.pre ("gpt-2", "smollm", "llama-bpe", …); nothing for other names.
std::optional<WordRule> word_rule_named(std::string_view name);

/// All of the text, in its order; bytes that are no UTF-8 count as other characters. O(n).
std::vector<std::string_view> split_words(std::string_view text, WordRule rule);

}  // namespace attn::model

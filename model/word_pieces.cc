#include "model/word_pieces.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "formats/bytes.h"
#include "model/unicode.h"

namespace attn::model {
namespace {

// Longer words become [UNK], as in BERT's own code.
constexpr std::size_t kMostCharacters = 100;

struct WordRules {
  bool lower_case = true, strip_accents = true, splits_ideographs = true;
};

class WordPieces final : public Tokenizer {
 public:
  WordPieces(std::vector<std::string> texts, WordRules rules) : texts_(std::move(texts)), rules_(rules) {
    for (std::size_t i = 0; i < texts_.size(); ++i) numbers_.emplace(texts_[i], static_cast<Token>(i));
  }

  std::optional<Token> find(const std::string& text) const {
    const auto found = numbers_.find(text);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> tokens{*find("[CLS]")};
    while (!text.empty()) {
      const auto [place, special] = next_special(text);
      for (const std::string& word : words_of(text.substr(0, place))) add_word(word, &tokens);
      if (!special) break;
      tokens.push_back(*find(std::string(*special)));
      text.remove_prefix(place + special->size());
    }
    tokens.push_back(*find("[SEP]"));
    return tokens;
  }

  std::string decode(std::span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens) {
      if (!has(token) || !is_ordinary(token)) continue;
      const std::string& piece = texts_[static_cast<std::size_t>(token)];
      if (piece.starts_with("##")) {
        text += piece.substr(2);
      } else {
        text += (text.empty() ? "" : " ") + piece;
      }
    }
    return text;
  }

  std::string label(Token token) const override {
    return has(token) ? printable_label(texts_[static_cast<std::size_t>(token)]) : "";
  }

  Token size() const override { return static_cast<Token>(texts_.size()); }
  std::optional<Token> begin() const override { return find("[CLS]"); }
  std::optional<Token> end() const override { return find("[SEP]"); }
  bool is_ordinary(Token token) const override {
    if (!has(token)) return false;
    const std::string& text = texts_[static_cast<std::size_t>(token)];
    return !(text.starts_with('[') && text.ends_with(']') && text.size() > 2);
  }

 private:
  static constexpr std::array<std::string_view, 5> kSpecial = {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"};

  bool has(Token token) const { return token >= 0 && token < size(); }

  // Where the next special token is written out, if any.
  std::pair<std::size_t, std::optional<std::string_view>> next_special(std::string_view text) const {
    for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
      for (const std::string_view special : kSpecial) {
        if (text.substr(at).starts_with(special) && find(std::string(special))) return {at, special};
      }
    }
    return {text.size(), std::nullopt};
  }

  // Words at blanks and around punctuation and ideographs.
  std::vector<std::string> words_of(std::string_view text) const {
    std::string cleaned;
    for (const std::string_view piece : characters_of(text)) {
      const Character character = first_character(piece);
      if (character.code < 0 || is_left_out(character.code)) continue;
      if (character.kind == CharacterKind::space) {
        cleaned += ' ';
      } else if (rules_.splits_ideographs && is_ideograph(character.code)) {
        cleaned += " " + std::string(piece) + " ";
      } else {
        cleaned += piece;
      }
    }
    cleaned = lower_case(cleaned, rules_.lower_case, rules_.strip_accents);
    std::vector<std::string> words;
    bool within = false;
    for (const std::string_view piece : characters_of(cleaned)) {
      const Character character = first_character(piece);
      const bool alone = is_punctuation(character.code);
      if (character.kind != CharacterKind::space) {
        if (!within || alone) words.emplace_back();
        words.back() += piece;
      }
      within = character.kind != CharacterKind::space && !alone;
    }
    return words;
  }

  // The longest piece first, then the longest of the rest; where there is none, the whole word is unknown.
  void add_word(const std::string& word, std::vector<Token>* tokens) const {
    const std::vector<std::string_view> characters = characters_of(word);
    std::vector<Token> pieces;
    std::size_t start = 0;
    while (characters.size() <= kMostCharacters && start < word.size()) {
      std::size_t end = word.size();
      std::optional<Token> found;
      for (auto last = characters.rbegin(); end > start; end -= last->size(), ++last) {
        found = find((start > 0 ? "##" : "") + word.substr(start, end - start));
        if (found) break;
      }
      if (!found) break;
      pieces.push_back(*found);
      start = end;
    }
    if (start < word.size()) pieces = {*find("[UNK]")};
    tokens->insert(tokens->end(), pieces.begin(), pieces.end());
  }

  std::vector<std::string> texts_;
  std::unordered_map<std::string, Token> numbers_;
  WordRules rules_;
};

// Everything that is not said is as in BERT's uncased models; accents go where letters are lowered.
Status read_rules(const std::string& path, WordRules* rules) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return {};
  formats::Bytes file;
  ATTN_RETURN_IF_ERROR(formats::map_file(path, &file));
  const nlohmann::json config = nlohmann::json::parse(file.text(), nullptr, false);
  if (!config.is_object()) return Status::error("model: " + path + " is no JSON object; fetch the model again");
  const auto truth = [&](const char* key, bool otherwise) {
    const auto found = config.find(key);
    return found != config.end() && found->is_boolean() ? found->get<bool>() : otherwise;
  };
  rules->lower_case = truth("do_lower_case", true);
  rules->strip_accents = truth("strip_accents", rules->lower_case);
  rules->splits_ideographs = truth("tokenize_chinese_chars", true);
  return {};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Status read_word_pieces(const std::string& folder, std::unique_ptr<Tokenizer>* tokenizer) {
  formats::Bytes file;
  ATTN_RETURN_IF_ERROR(formats::map_file(folder + "/vocab.txt", &file));
  WordRules rules;
  ATTN_RETURN_IF_ERROR(read_rules(folder + "/tokenizer_config.json", &rules));
  auto pieces = std::make_unique<WordPieces>(lines_of(file.text()), rules);
  for (const char* needed : {"[UNK]", "[CLS]", "[SEP]"}) {
    if (!pieces->find(needed))
      return Status::error("model: vocab.txt has no " + std::string(needed) + "; fetch the model again");
  }
  *tokenizer = std::move(pieces);
  return {};
}

}  // namespace attn::model

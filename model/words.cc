#include "model/words.h"

#include <algorithm>
#include <array>
#include <string>

#include "model/unicode.h"

namespace attn::model {
namespace {

using enum CharacterKind;

// A place in a text. Each `take_…` moves on by what it matches, and says whether that was anything.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  std::size_t at() const { return at_; }
  void go_to(std::size_t at) { at_ = at; }

  std::optional<Character> next() const {
    if (done()) return std::nullopt;
    return first_character(text_.substr(at_));
  }
  bool next_is(CharacterKind kind) const {
    const auto character = next();
    return character && character->kind == kind;
  }
  bool next_is_break() const { return !done() && (text_[at_] == '\r' || text_[at_] == '\n'); }

  void skip() { at_ += next()->bytes; }

  // Characters of a kind, `most` of them.
  bool take(CharacterKind kind, int most = 1 << 30) {
    const std::size_t start = at_;
    for (; most > 0 && next_is(kind); --most) skip();
    return at_ > start;
  }

  bool take_breaks() {
    const std::size_t start = at_;
    while (next_is_break()) ++at_;
    return at_ > start;
  }

  bool take_contraction(bool any_case) {
    if (done() || text_[at_] != '\'') return false;
    std::string next(text_.substr(at_ + 1, 2));
    if (any_case) {
      for (char& c : next) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (!next.starts_with(ending)) continue;
      at_ += 1 + ending.size();
      return true;
    }
    return false;
  }

  // A blank, if any, and characters of a kind.
  bool take_with_blank(CharacterKind kind) {
    const std::size_t start = at_;
    if (text_[at_] == ' ') ++at_;
    if (take(kind)) return true;
    at_ = start;
    return false;
  }

  // Space up to the last one before a word, which belongs to that word; all of it at the end, or where there is but one.
  void take_space() {
    std::size_t last = at_;
    int count = 0;
    for (; next_is(space); ++count) {
      last = at_;
      skip();
    }
    if (!done() && count > 1) at_ = last;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

void take_gpt2_word(Scanner& scanner) {
  if (scanner.take_contraction(false)) return;
  for (const CharacterKind kind : {letter, number, other}) {
    if (scanner.take_with_blank(kind)) return;
  }
  scanner.take_space();
}

// \s*[\r\n]+: space up to the last line break of the run.
bool take_lines(Scanner& scanner) {
  const std::size_t start = scanner.at();
  std::size_t end = start;
  while (scanner.next_is(space)) {
    const bool is_break = scanner.next_is_break();
    scanner.skip();
    if (is_break) end = scanner.at();
  }
  scanner.go_to(end);
  return end > start;
}

void take_llama3_word(Scanner& scanner) {
  if (scanner.take_contraction(true)) return;
  const std::size_t start = scanner.at();
  if (!scanner.next_is(letter) && !scanner.next_is(number) && !scanner.next_is_break()) scanner.skip();
  if (scanner.take(letter)) return;
  scanner.go_to(start);
  if (scanner.take(number, 3)) return;
  if (scanner.take_with_blank(other)) {
    scanner.take_breaks();
    return;
  }
  if (!take_lines(scanner)) scanner.take_space();
}

template <class TakeWord>
void split_by(std::string_view text, const TakeWord& take_word, std::vector<std::string_view>* words) {
  for (Scanner scanner(text); !scanner.done();) {
    const std::size_t start = scanner.at();
    take_word(scanner);
    words->push_back(text.substr(start, scanner.at() - start));
  }
}

void split_digits(std::string_view text, std::vector<std::string_view>* words) {
  Scanner scanner(text);
  std::size_t start = 0;
  const auto finish = [&](std::size_t end) { split_by(text.substr(start, end - start), take_gpt2_word, words); };
  while (!scanner.done()) {
    const std::size_t at = scanner.at();
    const bool digit = scanner.next_is(number);
    scanner.skip();
    if (!digit) continue;
    finish(at);
    words->push_back(text.substr(at, scanner.at() - at));
    start = scanner.at();
  }
  finish(text.size());
}

}  // namespace

std::optional<WordRule> word_rule_named(std::string_view name) {
  struct Named {
    std::string_view name;
    WordRule rule;
  };
  constexpr std::array<Named, 11> kNames = {{{"gpt-2", WordRule::gpt2},
                                             {"phi-2", WordRule::gpt2},
                                             {"smollm", WordRule::digits},
                                             {"starcoder", WordRule::digits},
                                             {"refact", WordRule::digits},
                                             {"command-r", WordRule::digits},
                                             {"codeshell", WordRule::digits},
                                             {"llama3", WordRule::llama3},
                                             {"llama-v3", WordRule::llama3},
                                             {"llama-bpe", WordRule::llama3},
                                             {"falcon3", WordRule::llama3}}};
  const auto* found = std::find_if(kNames.begin(), kNames.end(), [&](const Named& n) { return n.name == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->rule);
}

std::vector<std::string_view> split_words(std::string_view text, WordRule rule) {
  std::vector<std::string_view> words;
  switch (rule) {
    case WordRule::gpt2: split_by(text, take_gpt2_word, &words); break;
    case WordRule::digits: split_digits(text, &words); break;
    case WordRule::llama3: split_by(text, take_llama3_word, &words); break;
  }
  return words;
}

}  // namespace attn::model

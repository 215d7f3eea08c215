// Unicode to LaTeX: one table of symbols, one walk over the characters.
#include "explain/latex_symbols.h"

#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace attn::explain {
namespace {

using Symbol = std::pair<std::string_view, std::string_view>;

// Inside math mode. Powers are written one digit at a time and joined by latex_math.
constexpr std::array<Symbol, 13> kSymbols = {{{"−", "-"},
                                              {"·", "\\cdot "},
                                              {"∞", "\\infty "},
                                              {"→", "\\to "},
                                              {"…", "\\ldots "},
                                              {"ᵀ", "^{T}"},
                                              {"×", "\\times "},
                                              {"%", "\\%"},
                                              {"#", "\\#"},
                                              {"&", "\\&"},
                                              {"_", "\\_"},
                                              {"{", "\\{"},
                                              {"}", "\\}"}}};
constexpr std::array<Symbol, 11> kPowers = {{{"⁰", "0"},
                                             {"¹", "1"},
                                             {"²", "2"},
                                             {"³", "3"},
                                             {"⁴", "4"},
                                             {"⁵", "5"},
                                             {"⁶", "6"},
                                             {"⁷", "7"},
                                             {"⁸", "8"},
                                             {"⁹", "9"},
                                             {"⁻", "-"}}};
// In running text. ASCII ones that LaTeX would take as commands, and typography.
constexpr std::array<Symbol, 12> kTextSymbols = {{{"\\", "\\textbackslash{}"},
                                                  {"~", "\\textasciitilde{}"},
                                                  {"^", "\\textasciicircum{}"},
                                                  {"<", "$<$"},
                                                  {">", "$>$"},
                                                  {"|", "$|$"},
                                                  {"$", "\\$"},
                                                  {"%", "\\%"},
                                                  {"#", "\\#"},
                                                  {"&", "\\&"},
                                                  {"_", "\\_"},
                                                  {"…", "\\ldots{}"}}};

// Moves past the first symbol of the table that `text` has at `position`; empty where it has none.
template <std::size_t count>
std::string_view take(const std::array<Symbol, count>& table, std::string_view text, std::size_t* position) {
  for (const auto& [symbol, latex] : table) {
    if (text.substr(*position).starts_with(symbol)) {
      *position += symbol.size();
      return latex;
    }
  }
  return {};
}

// "⁻⁵" as "^{-5}".
std::string take_power(std::string_view text, std::size_t* position) {
  std::string power;
  for (std::string_view digit = take(kPowers, text, position); !digit.empty();
       digit = take(kPowers, text, position)) {
    power += digit;
  }
  return power.empty() ? "" : std::string("^{") + power + "}";
}

// "√128" or "√d" as "\sqrt{128}".
std::string take_root(std::string_view text, std::size_t* position) {
  constexpr std::string_view kRoot = "√";
  if (!text.substr(*position).starts_with(kRoot)) return "";
  std::size_t end = *position += kRoot.size();
  while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
  const std::string under(text.substr(*position, end - *position));
  *position = end;
  return "\\sqrt{" + under + "}";
}

bool is_letter(char character) { return std::isalpha(static_cast<unsigned char>(character)) != 0; }

// A run of letters: a function, a variable of one letter, or words.
std::string take_words(std::string_view text, std::size_t* position) {
  std::size_t end = *position;
  while (end < text.size() && is_letter(text[end])) ++end;
  const std::string word(text.substr(*position, end - *position));
  *position = end;
  if (word.empty()) return "";
  if (word == "exp" || word == "tanh" || word == "max") return "\\" + word;
  return word.size() == 1 ? word : "\\text{" + word + "}";
}

// Math mode drops blanks. It spaces operators by itself; elsewhere, between the numbers of a row, blanks are kept.
std::string blank_or_character(std::string_view text, std::size_t position) {
  if (text[position] != ' ') return std::string(1, text[position]);
  for (const std::string_view symbol : {"+", "=", "/", "−", "→"}) {
    if (text.substr(0, position).ends_with(symbol) || text.substr(position + 1).starts_with(symbol)) return " ";
  }
  return "\\ ";
}

}  // namespace

std::string latex_math(const std::string& math) {
  std::string latex;
  for (std::size_t position = 0; position < math.size();) {
    std::string piece(take(kSymbols, math, &position));
    if (piece.empty()) piece = take_power(math, &position);
    if (piece.empty()) piece = take_root(math, &position);
    if (piece.empty()) piece = take_words(math, &position);
    if (piece.empty()) piece = blank_or_character(math, position++);
    latex += piece;
  }
  return latex;
}

std::string latex_text(const std::string& text) {
  std::string latex;
  for (std::size_t position = 0; position < text.size();) {
    std::string piece(take(kTextSymbols, text, &position));
    if (!piece.empty()) {
      latex += piece;
      continue;
    }
    piece = take_power(text, &position) + take_root(text, &position);
    if (piece.empty()) piece = take(kSymbols, text, &position);
    latex += piece.empty() ? std::string(1, text[position++]) : "$" + piece + "$";
  }
  return latex;
}

}  // namespace attn::explain

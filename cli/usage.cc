// What the parser says, in this program's own words.
#include "cli/usage.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace attn::cli {
namespace {

// The name of the option that was typed: -o where --out would do as well.
std::string as_typed(const CLI::Option& option, std::span<const char* const> arguments) {
  for (const std::string_view argument : arguments) {
    const std::string_view name = argument.substr(0, argument.find('='));
    for (const std::string& known : option.get_lnames()) {
      if (name == "--" + known) return std::string(name);
    }
    for (const std::string& known : option.get_snames()) {
      if (argument.starts_with("-" + known)) return "-" + known;
    }
  }
  return option.get_name();
}

// The option that a sentence of the parser begins with, as in "--out: 1 required FILE missing".
const CLI::Option* option_of(const std::string& sentence, const CLI::App& verb) {
  return verb.get_option_no_throw(sentence.substr(0, sentence.find(':')));
}

// An option with a wrong number of values; empty where it is something else.
std::string wrong_count(const std::string& sentence, const CLI::App& verb, std::span<const char* const> arguments) {
  const CLI::Option* option = option_of(sentence, verb);
  if (option == nullptr) return "";
  const std::string name = as_typed(*option, arguments);
  if (option->count() > 1) {
    return name + ": given " + std::to_string(option->count()) + " times; give it once";
  }
  return name + ": no value follows it; write " + name + " " + option->get_type_name();
}

std::string extra_argument(const std::string& argument, const std::string& help) {
  const std::string sentence = "\"" + argument + "\" is not an argument here; ";
  if (argument == "top-left" || argument == "bottom-right") return sentence + "write it as --causal=" + argument;
  return sentence + help + " lists them";
}

// How many bytes the UTF-8 character at the beginning takes; 0 where there is none that can be shown.
std::size_t shown_bytes(std::string_view text) {
  const auto byte = [&](std::size_t n) { return n < text.size() ? static_cast<unsigned char>(text[n]) : 0U; };
  const auto follows = [&](std::size_t n) { return (byte(n) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  // C2 80 to C2 9F are control characters too; lower first bytes would write shorter characters at length.
  if (first < 0xC2 || (first == 0xC2 && byte(1) < 0xA0)) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) return follows(1) && follows(2) && (first > 0xE0 || byte(1) >= 0xA0) ? 3 : 0;
  return first < 0xF5 && follows(1) && follows(2) && follows(3) && (first > 0xF0 || byte(1) >= 0x90) ? 4 : 0;
}

}  // namespace

std::string usage_sentence(const CLI::ParseError& error, const CLI::App& program, const std::string& verb,
                           std::span<const char* const> arguments) {
  const std::string help = verb.empty() ? "attn --help" : "attn " + verb + " --help";
  const std::vector<std::string> remaining = program.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !remaining.empty()) {
    return extra_argument(remaining.front(), help);
  }
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && !verb.empty()) {
    std::string sentence = wrong_count(text, *program.get_subcommand(verb), arguments);
    if (!sentence.empty()) return sentence;
  }
  return text.substr(0, text.find('\n')) + "; see " + help;
}

std::string one_line(const std::string& sentence) {
  std::string line;
  for (std::size_t n = 0; n < sentence.size();) {
    const std::size_t bytes = shown_bytes(std::string_view(sentence).substr(n));
    line += bytes > 0 ? sentence.substr(n, bytes) : sentence[n] == '\n' ? " " : "?";
    n += std::max<std::size_t>(bytes, 1);
  }
  return line;
}

}  // namespace attn::cli

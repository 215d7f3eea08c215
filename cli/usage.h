// Wrong use of the command line in one sentence: what the parser found, told by the flag as it was typed.
#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace attn::cli {

/// What the parser says, as one sentence that says what to do. `verb` is empty where none was given; `arguments` are
/// the command line.
std::string usage_sentence(const CLI::ParseError& error, const CLI::App& program, const std::string& verb,
                           std::span<const char* const> arguments);

/// The sentence as one line that any terminal can show: what breaks lines becomes a blank, other control characters
/// and bytes that are no UTF-8 become '?'.
std::string one_line(const std::string& sentence);

}  // namespace attn::cli

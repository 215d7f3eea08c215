// Numbers as they are typed after a flag, and as they are printed.
#include "cli/numbers.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "cli/verbs.h"

namespace attn::cli {
namespace {

// The whole text must be the number: "3x" and "" are none.
template <class Number>
bool parse_all(std::string_view text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [stopped_at, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped_at == end;
}

// Digits, perhaps behind a minus sign: a whole number, however large.
bool is_whole(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string in_quotes(std::string_view flag, std::string_view text) {
  return std::string(flag) + ": \"" + std::string(text) + "\" ";
}

std::string named(std::string_view flag, std::string_view text) { return in_quotes(flag, text) + "is not "; }

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, arguments...);
  return text.data();
}

}  // namespace

std::int64_t parse_whole(std::string_view flag, std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t number = 0;
  const bool parsed = parse_all(text, &number);
  if (parsed && number >= least && number <= most) return number;
  if (is_whole(text)) {
    const bool below = parsed ? number < least : text.starts_with('-');
    const std::string rule =
        below ? "below " + std::to_string(least) + ", the least" : "above " + std::to_string(most) + ", the most";
    throw Failure{2, in_quotes(flag, text) + "is " + rule + " that is possible here"};
  }
  std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
  if (most == std::numeric_limits<std::int64_t>::max()) range = "of at least " + std::to_string(least);
  throw Failure{2, named(flag, text) + "a whole number " + range};
}

double parse_real(std::string_view flag, std::string_view text) {
  double number = 0;
  if (parse_all(text, &number) && std::isfinite(number)) return number;
  throw Failure{2, named(flag, text) + "a finite number; give one such as 0.125"};
}

std::vector<std::int64_t> parse_whole_list(std::string_view flag, std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view piece = text.substr(begin, comma - begin);
    std::int64_t number = 0;
    if (is_whole(piece)) {
      number = parse_whole(flag, piece, 0, std::numeric_limits<std::int64_t>::max());
    } else {
      throw Failure{2,
                    named(flag, text) + "a list of whole numbers from 0 up; separate them by commas, as in 5,17"};
    }
    numbers.push_back(number);
    begin = comma + 1;
  }
  return numbers;
}

std::string counted(std::int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string count_text(double count) {
  if (count >= 1e15) return formatted("%.3e", count);
  std::string digits = formatted("%.0f", count);
  for (std::size_t left = digits.size(); left > 3; left -= 3) digits.insert(left - 3, ",");
  return digits;
}

std::string bytes_text(double bytes) {
  if (bytes < 1024) return count_text(bytes) + " bytes";
  constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double size = bytes / 1024;
  std::size_t unit = 0;
  while (size >= 1024 && unit + 1 < kUnits.size()) {
    size /= 1024;
    ++unit;
  }
  const std::string rounded = size < 1e6 ? formatted("%.1f", size) : formatted("%.3e", size);
  return rounded + " " + kUnits[unit] + " (" + count_text(bytes) + " bytes)";
}

std::string duration_text(double seconds) {
  constexpr std::array<std::pair<double, const char*>, 5> kUnits = {
      {{1e-6, "µs"}, {1e-3, "ms"}, {1, "s"}, {3600, "hours"}, {3600 * 24 * 365.25, "years"}}};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && seconds >= kUnits[unit + 1].first) ++unit;
  const double amount = seconds / kUnits[unit].first;
  return (amount < 1e6 ? formatted("%.1f ", amount) : formatted("%.3e ", amount)) + kUnits[unit].second;
}

}  // namespace attn::cli

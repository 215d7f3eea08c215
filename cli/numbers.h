// Numbers as they are typed after a flag, and as they are printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::cli {

/// A whole number in [least, most]. Throws Failure{2} that names the flag, the text and the range, or the end of it
/// that a whole number is beyond.
std::int64_t parse_whole(std::string_view flag, std::string_view text, std::int64_t least, std::int64_t most);

/// A finite number. Throws Failure{2} that names the flag and the text.
double parse_real(std::string_view flag, std::string_view text);

/// Whole numbers from 0 up, separated by commas, as in "5,17". Throws Failure{2} that names the flag.
std::vector<std::int64_t> parse_whole_list(std::string_view flag, std::string_view text);

/// "1 thread", "2 threads".
std::string counted(std::int64_t count, const std::string& thing);

/// "10,000,000,000"; from 10^15 up "1.000e+15".
std::string count_text(double count);

/// "4.0 MiB", with the exact count behind it while it is short: "4.0 MiB (4,194,304 bytes)".
std::string bytes_text(double bytes);

/// "1.3 ms", "2.1 s", "3.5 hours", "2.0 years".
std::string duration_text(double seconds);

}  // namespace attn::cli

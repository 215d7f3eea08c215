// What the standard library of Debian's emscripten (3.1.6) does not have yet, seen before every source.
#pragma once

#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

#ifndef __cpp_lib_bit_cast
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif

#ifndef __cpp_lib_to_chars
namespace std {
// Decimal numbers, as the standard has it: no blanks, no plus sign and no hexadecimal digits in front.
inline from_chars_result from_chars(const char* first, const char* last, double& number) {
  const string text(first, last);
  const size_t digits = text.find_first_not_of("0123456789.eE+-");
  const string decimal = text.substr(0, digits);
  char* end = nullptr;
  const double read = strtod(decimal.c_str(), &end);
  if (end == decimal.c_str() || decimal.front() == '+') return {first, errc::invalid_argument};
  number = read;
  return {first + (end - decimal.c_str()), errc()};
}
}  // namespace std
#endif

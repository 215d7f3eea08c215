// Numbers as a lesson shows them.
#include "explain/numbers.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace attn::explain {
namespace {

std::string formatted(const char* format, int digits, double number) {
  std::array<char, 400> text{};  // the largest double has 309 digits
  std::snprintf(text.data(), text.size(), format, digits, number);
  return text.data();
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string superscript(int number) {
  static const std::array<const char*, 10> kSuperscripts = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(number))) text += kSuperscripts[digit - '0'];
  return text;
}

std::string with_power_of_ten(double magnitude) {
  const std::string text = formatted("%.*e", 2, magnitude);
  const std::size_t e = text.find('e');
  return without_trailing_zeros(text.substr(0, e)) + "·10" + superscript(std::stoi(text.substr(e + 1)));
}

}  // namespace

std::string number_text(double number, int digits) {
  if (std::isnan(number)) return "nan";
  const std::string sign = number < 0 ? "−" : "";
  const double magnitude = std::fabs(number);
  if (std::isinf(number)) return sign + "∞";
  if (magnitude == 0) return "0";
  const std::string fixed = without_trailing_zeros(formatted("%.*f", digits, magnitude));
  const bool loses_digits = magnitude < std::fmin(1e-3, std::pow(10, 1 - digits));
  if (fixed == "0" || loses_digits || magnitude >= 1e9) return sign + with_power_of_ten(magnitude);
  return sign + fixed;
}

std::string factor_text(double number, int digits) {
  const std::string text = number_text(number, digits);
  return number < 0 ? std::string("(") + text + ")" : text;
}

std::string vector_text(const std::vector<double>& numbers, int digits) {
  std::string text = "(";
  for (std::size_t n = 0; n < numbers.size() && n < kMostTerms; ++n) {
    text += (n == 0 ? "" : ", ") + number_text(numbers[n], digits);
  }
  return text + (numbers.size() > kMostTerms ? ", …)" : ")");
}

std::string dot_product_text(const std::vector<double>& left, const std::vector<double>& right) {
  if (left.size() > kMostTerms) return "the sum of " + std::to_string(left.size()) + " products";
  std::string text;
  for (std::size_t n = 0; n < left.size(); ++n) {
    text += (n == 0 ? "" : " + ") + factor_text(left[n]) + "·" + factor_text(right[n]);
  }
  return text;
}

std::string plain_row_text(const std::vector<double>& numbers, int digits) {
  std::string text;
  for (const double number : numbers) {
    if (!text.empty()) text += ' ';
    text += number_text(number, digits);
  }
  return text;
}

}  // namespace attn::explain

// Numbers as a lesson shows them: few digits, a true minus sign, −∞ as such.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attn::explain {

/// Decimals of scores and weights, and of outputs.
inline constexpr int kDigits = 3;
inline constexpr int kOutputDigits = 2;

/// Calculations with more terms than this are not written out.
inline constexpr std::size_t kMostTerms = 8;

/// At most so many decimals, without trailing zeros: 3.536, 0.5, 5. What would keep hardly a digit or is very large
/// is written with a power of ten: 1.67·10⁻⁵.
std::string number_text(double number, int digits = kDigits);

/// As number_text, in brackets where a minus sign would stand inside a product or a sum.
std::string factor_text(double number, int digits = kDigits);

/// "(2, 1)"; of a long one the first numbers and "…".
std::string vector_text(const std::vector<double>& numbers, int digits = kDigits);

/// "2·2 + 1·1"; of a long one "the sum of 16 products".
std::string dot_product_text(const std::vector<double>& left, const std::vector<double>& right);

/// "1 0.5 0".
std::string plain_row_text(const std::vector<double>& numbers, int digits = kDigits);

}  // namespace attn::explain

// Which rows differ, in sentences.
#include <algorithm>
#include <set>
#include <string>

#include "diagnose/comparison.h"

namespace attn::diagnose {
namespace {

std::string count_of(std::int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// "0, 2 and 5", ten at most.
std::string list_of(const std::set<std::int64_t>& numbers) {
  std::string list;
  std::size_t n = 0;
  for (const std::int64_t number : numbers) {
    if (n == 10) return list + " and others";
    list += (n == 0 ? "" : n + 1 == numbers.size() ? " and " : ", ") + std::to_string(number);
    ++n;
  }
  return list;
}

}  // namespace

std::vector<std::string> describe_pattern(const std::array<std::int64_t, 4>& shape,
                                          const std::vector<bool>& differs, const std::vector<bool>& not_finite) {
  const auto [batch, heads, rows, columns] = shape;
  std::vector<std::string> sentences;
  const auto total = static_cast<std::int64_t>(differs.size());
  const std::int64_t count = std::count(differs.begin(), differs.end(), true);
  if (count == 0) return sentences;
  sentences.push_back(count == total ? "All rows differ."
                                     : std::to_string(count) + " of " + count_of(total, "row") + " differ.");
  const std::int64_t infinite = std::count(not_finite.begin(), not_finite.end(), true);
  if (infinite > 0)
    sentences.push_back(count_of(infinite, "row") + " of theirs hold NaN or infinity where ours do not.");

  std::set<std::int64_t> in_batches, in_heads, in_rows;
  std::int64_t first = rows, same_after_first = 0;
  for (std::int64_t n = 0; n < total; ++n) {
    if (!differs[static_cast<std::size_t>(n)]) continue;
    in_batches.insert(n / rows / heads);
    in_heads.insert(n / rows % heads);
    in_rows.insert(n % rows);
    first = std::min(first, n % rows);
  }
  for (std::int64_t n = 0; n < total; ++n)
    same_after_first += n % rows > first && !differs[static_cast<std::size_t>(n)];
  if (static_cast<std::int64_t>(in_batches.size()) < batch)
    sentences.push_back("Only in sequences " + list_of(in_batches) + ".");
  if (static_cast<std::int64_t>(in_heads.size()) < heads)
    sentences.push_back("Only in heads " + list_of(in_heads) + ".");
  const bool from_first_on = same_after_first == 0 && count < total;
  if (from_first_on && first > 0) {
    sentences.push_back((first == 1 ? "Row 0 is" : "Rows 0 to " + std::to_string(first - 1) + " are") +
                        " right, and all from row " + std::to_string(first) + " on differ.");
  } else if (static_cast<std::int64_t>(in_rows.size()) < rows && in_rows.size() <= 10) {
    sentences.push_back("Only rows " + list_of(in_rows) + " differ.");
  } else if (first > 0) {
    sentences.push_back("The first row that differs is " + std::to_string(first) + ".");
  }
  return sentences;
}

}  // namespace attn::diagnose

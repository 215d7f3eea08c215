// Which rows differ, in sentences.
#include <algorithm>
#include <set>
#include <string>

#include "diagnose/comparison.h"
#include "reference/row.h"

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

// Where the rows that differ are, of each head.
struct Places {
  std::set<std::int64_t> batches, heads, rows;
  std::int64_t first = 0;       // the lowest row that differs
  bool all_after_first = true;  // and with it all behind it, of every head
};

Places places_of(const std::array<std::int64_t, 4>& shape, const std::vector<bool>& differs) {
  const auto [batch, heads, rows, columns] = shape;
  Places places;
  places.first = rows;
  for (std::size_t n = 0; n < differs.size(); ++n) {
    const auto index = static_cast<std::int64_t>(n);
    if (!differs[n]) continue;
    places.batches.insert(index / rows / heads);
    places.heads.insert(index / rows % heads);
    places.rows.insert(index % rows);
    places.first = std::min(places.first, index % rows);
  }
  for (std::size_t n = 0; n < differs.size(); ++n) {
    if (static_cast<std::int64_t>(n) % rows > places.first && !differs[n]) places.all_after_first = false;
  }
  return places;
}

// "These are the last 44, what tiles of 64 leave over": empty where no common size of tiles ends there.
std::string about_last_tile(std::int64_t first, std::int64_t rows) {
  for (const std::int64_t tile : {16, 32, 64, 128, 256}) {
    if (rows % tile != 0 && first == rows / tile * tile)
      return "These are the last " + std::to_string(rows % tile) + ", what tiles of " + std::to_string(tile) +
             " rows leave over.";
  }
  return "";
}

// Whether the rows that differ are just those that hide some key, or just the others; empty where neither, or where looking
// would take long.
std::string about_hidden_keys(const reference::Inputs& inputs, const std::vector<bool>& differs) {
  constexpr std::int64_t kManyScores = std::int64_t{1} << 23;
  const auto [batch, heads, rows, columns] = inputs.query.shape;
  if (batch * heads * rows * inputs.key.shape[2] > kManyScores) return "";
  bool hiding_differs = false, hiding_agrees = false, open_differs = false, open_agrees = false;
  for (std::size_t n = 0; n < differs.size(); ++n) {
    const auto index = static_cast<std::int64_t>(n);
    const auto& sequence = inputs.sequences[static_cast<std::size_t>(index / rows / heads)];
    const std::int64_t i = index % rows;
    if (i >= sequence.queries) continue;
    bool hides = sequence.keys < inputs.key.shape[2];
    for (std::int64_t j = 0; j < sequence.keys && !hides; ++j)
      hides = !reference::is_visible(inputs, sequence, index / rows % heads, i, j);
    (hides ? (differs[n] ? hiding_differs : hiding_agrees) : differs[n] ? open_differs : open_agrees) = true;
  }
  if (hiding_differs && !hiding_agrees && !open_differs && open_agrees)
    return "They are the rows that hide some key.";
  if (open_differs && !open_agrees && !hiding_differs && hiding_agrees)
    return "They are the rows that see every key.";
  return "";
}

}  // namespace

std::vector<std::string> describe_pattern(const reference::Inputs& inputs, const std::vector<bool>& differs,
                                          const std::vector<bool>& not_finite) {
  const auto [batch, heads, rows, columns] = inputs.query.shape;
  std::vector<std::string> sentences;
  const auto say = [&](const std::string& sentence) {
    if (!sentence.empty()) sentences.push_back(sentence);
  };
  const auto total = static_cast<std::int64_t>(differs.size());
  const std::int64_t count = std::count(differs.begin(), differs.end(), true);
  if (count == 0) return sentences;
  say(count == total ? "All rows differ." : std::to_string(count) + " of " + count_of(total, "row") + " differ.");
  const std::int64_t infinite = std::count(not_finite.begin(), not_finite.end(), true);
  if (infinite > 0) say(count_of(infinite, "row") + " with NaN or infinity in theirs or ours alone.");

  const Places places = places_of(inputs.query.shape, differs);
  if (static_cast<std::int64_t>(places.batches.size()) < batch)
    say("Only in sequences " + list_of(places.batches) + ".");
  if (static_cast<std::int64_t>(places.heads.size()) < heads) say("Only in heads " + list_of(places.heads) + ".");
  if (places.all_after_first && places.first > 0) {
    say((places.first == 1 ? "Row 0 is" : "Rows 0 to " + std::to_string(places.first - 1) + " are") +
        " right, and all from row " + std::to_string(places.first) + " on differ.");
    say(about_last_tile(places.first, rows));
  } else if (static_cast<std::int64_t>(places.rows.size()) < rows && places.rows.size() <= 10) {
    say("Only rows " + list_of(places.rows) + " differ.");
  } else if (places.first > 0) {
    say("The first row that differs is " + std::to_string(places.first) + ".");
  }
  if (count < total) say(about_hidden_keys(inputs, differs));
  return sentences;
}

}  // namespace attn::diagnose

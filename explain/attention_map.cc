#include "explain/attention_map.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace attn::explain {
namespace {

constexpr std::string_view kBlank = "\u2581";  // how labels show one

// Positions that a query may see: those before it and itself, or all.
std::int64_t visible(const AttentionMap& map, std::int64_t from) { return map.causal ? from + 1 : map.size(); }

// What no habit explains: neither the first token, itself, a neighbour, nor a token that is no part of the text.
double beyond_habits(const AttentionMap& map, std::span<const float> row, std::int64_t from) {
  const std::int64_t keys = visible(map, from);
  double beyond = 0;
  for (std::int64_t j = 1; j < keys; ++j) {
    if (std::abs(j - from) <= 1 || map.special[static_cast<std::size_t>(j)]) continue;
    beyond += std::max(0.0, row[static_cast<std::size_t>(j)] - 1.0 / static_cast<double>(keys));
  }
  return beyond;
}

HeadRow head_row(const AttentionMap& map, std::size_t layer, std::int64_t head, std::int64_t from) {
  const std::span<const float> row = map.row(layer, head, from);
  HeadRow result{.layer = map.layers[layer], .head = head, .layer_here = layer};
  result.first = row[0];
  result.previous = from > 0 ? row[static_cast<std::size_t>(from - 1)] : 0;
  result.itself = row[static_cast<std::size_t>(from)];
  result.beyond = beyond_habits(map, row, from);
  result.order.resize(static_cast<std::size_t>(visible(map, from)));
  std::iota(result.order.begin(), result.order.end(), 0);
  std::stable_sort(result.order.begin(), result.order.end(), [&](std::int64_t a, std::int64_t b) {
    return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
  });
  return result;
}

// Where neighbours spell the text; the last one of them.
bool spells(const AttentionMap& map, std::int64_t first, std::string_view text, std::int64_t* last) {
  for (std::int64_t i = first; i < map.size(); ++i) {
    std::string_view piece = map.tokens[static_cast<std::size_t>(i)];
    if (piece.starts_with(kBlank) && piece != kBlank) {
      if (i > first) return false;
      piece.remove_prefix(kBlank.size());
    }
    // WordPiece marks pieces that go on.
    if (i > first && piece.starts_with("##")) piece.remove_prefix(2);
    if (!text.starts_with(piece) || piece.empty()) return false;
    text.remove_prefix(piece.size());
    if (text.empty()) {
      *last = i;
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<HeadRow> rank_heads(const AttentionMap& map, std::int64_t from) {
  std::vector<HeadRow> rows;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t head = 0; head < map.heads; ++head) rows.push_back(head_row(map, layer, head, from));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const HeadRow& a, const HeadRow& b) { return a.beyond > b.beyond; });
  return rows;
}

std::vector<HeadHabits> habits_of(const AttentionMap& map) {
  std::vector<HeadHabits> all;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t head = 0; head < map.heads; ++head) {
      HeadHabits habits{.layer = map.layers[layer], .head = head};
      const double rows = static_cast<double>(std::max<std::int64_t>(1, map.size() - 2));
      for (std::int64_t from = 2; from < map.size(); ++from) {
        const std::span<const float> row = map.row(layer, head, from);
        habits.first += row[0] / rows;
        habits.previous += row[static_cast<std::size_t>(from - 1)] / rows;
        habits.itself += row[static_cast<std::size_t>(from)] / rows;
        habits.beyond += beyond_habits(map, row, from) / rows;
      }
      all.push_back(habits);
    }
  }
  return all;
}

Status find_token(const AttentionMap& map, const std::string& text, std::int64_t* position, std::int64_t* places) {
  *places = 0;
  for (std::int64_t first = 0; first < map.size() && !text.empty(); ++first) {
    if (spells(map, first, text, position)) ++*places;
  }
  if (*places > 0) return {};
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0 && number < map.size()) {
    *position = number;
    *places = 1;
    return {};
  }
  std::string labels;
  for (std::size_t i = 0; i < std::min<std::size_t>(map.tokens.size(), 40); ++i)
    labels += (labels.empty() ? "" : " ") + plain_label(map.tokens[i]);
  if (map.tokens.size() > 40) labels += " …";
  return Status::error("\"" + text + "\" is no token of the text, nor a position from 0 to " +
                       std::to_string(map.size() - 1) + "; its tokens are " + labels);
}

std::string plain_label(const std::string& label) {
  return label.starts_with(kBlank) && label != kBlank ? label.substr(kBlank.size()) : label;
}

}  // namespace attn::explain

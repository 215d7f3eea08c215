#include "explain/map_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace attn::explain {
namespace {

constexpr double kMargin = 24, kLabelSize = 11, kTitleSize = 17, kLine = 18;

// Cells of a small map, at most: longer texts show the largest weight of each patch.
constexpr std::int64_t kMostCells = 96;

// Pixels that a wide picture may take; longer texts show the tokens with the largest weights alone.
constexpr double kMostArcWidth = 1500;
constexpr std::size_t kMostArcTokens = 24;

std::string decimal(double number, const char* format = "%.2f") {
  char text[32];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

// White to dark blue, one hue, so that every eye sees the order. The square root shows small weights, too.
Colour colour_of(double weight) {
  if (std::isnan(weight)) return kAccent;
  const double t = std::sqrt(std::clamp(weight, 0.0, 1.0));
  struct Stop {
    double at, red, green, blue;
  };
  constexpr Stop kStops[] = {{0, 255, 255, 255}, {0.35, 189, 215, 238}, {0.7, 66, 133, 197}, {1, 8, 40, 97}};
  const Stop* right = kStops + 1;
  while (right->at < t) ++right;
  const Stop* left = right - 1;
  const double share = (t - left->at) / (right->at - left->at);
  const auto mix = [share](double a, double b) {
    return static_cast<std::uint8_t>(std::lround(a + share * (b - a)));
  };
  return {mix(left->red, right->red), mix(left->green, right->green), mix(left->blue, right->blue)};
}

// A head's table, at most `most` cells a side: the largest weight of each patch.
Cells cells_of(const AttentionMap& map, std::size_t layer, std::int64_t head, double x, double y, double side,
               std::int64_t most) {
  const std::int64_t n = map.size(), cells = std::min(n, most);
  std::vector<double> largest(static_cast<std::size_t>(cells * cells), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::span<const float> row = map.row(layer, head, i);
    for (std::int64_t j = 0; j < n; ++j) {
      double& cell = largest[static_cast<std::size_t>(i * cells / n * cells + j * cells / n)];
      const double weight = row[static_cast<std::size_t>(j)];
      if (std::isnan(weight) || weight > cell) cell = weight;
    }
  }
  Cells result{x, y, side, side, cells, cells, {}};
  for (const double weight : largest) result.colours.push_back(colour_of(weight));
  return result;
}

// Draws downwards; `bottom` is where the next part begins.
class Page {
 public:
  Page(const AttentionMap& map, const MapPictureOptions& options) : map_(map), options_(options) {
    if (options.from) ranking_ = rank_heads(map, *options.from);
  }

  Picture draw() {
    heading();
    if (options_.head) {
      if (options_.from) arcs(row_of_head());
      large_map();
    } else {
      if (options_.from && !ranking_.empty()) arcs(ranking_.front());
      grid();
    }
    legend();
    footer();
    picture_.width = std::ceil(right_ + kMargin);
    picture_.height = std::ceil(bottom_ + kMargin / 2);
    return std::move(picture_);
  }

 private:
  void text(Text text) {
    const double width = text_width(text.text, text.size);
    if (text.turned == 0 && text.anchor == Anchor::start) widen(text.x + width);
    picture_.shapes.emplace_back(std::move(text));
  }
  void widen(double x) { right_ = std::max(right_, x); }

  std::string label(std::int64_t position) const {
    return plain_label(map_.tokens[static_cast<std::size_t>(position)]);
  }

  const HeadRow& row_of_head() const {
    return *std::find_if(ranking_.begin(), ranking_.end(),
                         [&](const HeadRow& r) { return r.head == *options_.head; });
  }

  void heading() {
    const std::int64_t heads = static_cast<std::int64_t>(map_.layers.size()) * map_.heads;
    std::string title =
        options_.head ? "Layer " + std::to_string(map_.layers.front()) + ", head " + std::to_string(*options_.head)
                      : "What " + std::to_string(heads) + " heads look at";
    if (options_.from) title += ", from “" + label(*options_.from) + "” (" + std::to_string(*options_.from) + ")";
    bottom_ += kTitleSize;
    text({kMargin, bottom_, title, kTitleSize, kInk, Anchor::start, true});
    bottom_ += kLine;
    text({kMargin, bottom_, map_.model, kLabelSize, kFaint});
    bottom_ += kLine;
    picture_.title = title + ". " + map_.model + ". " + kMapCaveat;
  }

  // The tokens in a line, and arcs from one of them as wide as its weights.
  void arcs(const HeadRow& head) {
    const std::vector<std::int64_t> shown = shown_in_arcs(head);
    const std::span<const float> row = map_.row(head.layer_here, head.head, *options_.from);
    std::vector<double> middles;
    double x = kMargin;
    for (const std::int64_t position : shown) {
      x += position == shown.front() ? 0 : gap_before(position);
      const double width = width_of(position);
      middles.push_back(x + width / 2);
      x += width;
    }
    widen(x);
    const auto middle_of = [&](std::int64_t position) {
      return middles[static_cast<std::size_t>(std::find(shown.begin(), shown.end(), position) - shown.begin())];
    };
    const double from = middle_of(*options_.from), height = std::clamp((x - kMargin) / 5, 60.0, 160.0);
    bottom_ += 6;
    if (!options_.head) {
      text({kMargin, bottom_ + 6,
            "layer " + std::to_string(head.layer) + ", head " + std::to_string(head.head) +
                ": the head that goes furthest beyond habits",
            kLabelSize, kInk, Anchor::start, true});
    }
    bottom_ += height + 22;
    for (const std::int64_t position : shown) {
      const double weight = row[static_cast<std::size_t>(position)], to = middle_of(position);
      if (!(weight >= 0.005) || position == *options_.from) continue;
      const double span = std::abs(to - from) / std::max(x - kMargin, 1.0);
      picture_.shapes.emplace_back(Arc{from, to, bottom_, height * std::clamp(0.25 + span, 0.25, 1.0), kAccent,
                                       1 + 9 * weight, 0.25 + 0.7 * std::sqrt(weight)});
    }
    for (const std::int64_t position : shown) {
      const bool is_from = position == *options_.from;
      const double weight = row[static_cast<std::size_t>(position)], at = middle_of(position);
      text({at, bottom_ + 18, label(position), 13, is_from ? kAccent : kInk, Anchor::middle, is_from});
      if (weight >= 0.005) text({at, bottom_ + 34, decimal(weight), kLabelSize, kFaint, Anchor::middle});
    }
    bottom_ += 34 + kLine;
    if (static_cast<std::int64_t>(shown.size()) == map_.size()) return;
    text({kMargin, bottom_,
          "The " + std::to_string(shown.size()) + " tokens with the largest weights, of " +
              std::to_string(map_.size()) + ".",
          kLabelSize, kFaint});
    bottom_ += kLine;
  }

  double width_of(std::int64_t position) const { return std::max(text_width(label(position), 13), 30.0); }

  // Pieces of a word stand close together.
  double gap_before(std::int64_t position) const {
    const auto begins = [](const std::string& token) { return token.starts_with("\u2581"); };
    const std::string& token = map_.tokens[static_cast<std::size_t>(position)];
    const bool marks_words = std::any_of(map_.tokens.begin(), map_.tokens.end(), begins);
    return token.starts_with("##") || (marks_words && !begins(token)) ? 3 : 12;
  }

  std::vector<std::int64_t> shown_in_arcs(const HeadRow& head) const {
    double width = 0;
    for (std::int64_t i = 0; i < map_.size(); ++i) width += gap_before(i) + width_of(i);
    std::vector<std::int64_t> shown;
    if (width <= kMostArcWidth) {
      for (std::int64_t i = 0; i < map_.size(); ++i) shown.push_back(i);
      return shown;
    }
    shown.assign(head.order.begin(),
                 head.order.begin() + static_cast<std::ptrdiff_t>(std::min(kMostArcTokens, head.order.size())));
    if (std::find(shown.begin(), shown.end(), *options_.from) == shown.end()) shown.push_back(*options_.from);
    std::sort(shown.begin(), shown.end());
    return shown;
  }

  // Layers go across where they are more than heads: screens are wider than high.
  void grid() {
    const std::int64_t n = map_.size(), layers = static_cast<std::int64_t>(map_.layers.size());
    const bool layers_across = layers > map_.heads;
    const std::int64_t columns = layers_across ? layers : map_.heads, rows = layers_across ? map_.heads : layers;
    const double side = std::clamp(static_cast<double>(std::min(n, kMostCells)) * 4, 56.0, 96.0), step = side + 8;
    const double left = kMargin + 62;
    const auto name = [&](bool of_layer, std::int64_t i) {
      return of_layer ? "layer " + std::to_string(map_.layers[static_cast<std::size_t>(i)])
                      : "head " + std::to_string(i);
    };
    bottom_ += 8;
    for (std::int64_t c = 0; c < columns; ++c) {
      const double middle = left + static_cast<double>(c) * step + side / 2;
      text({middle, bottom_ + kLabelSize, name(layers_across, c), kLabelSize, kFaint, Anchor::middle});
    }
    bottom_ += kLabelSize + 8;
    for (std::int64_t r = 0; r < rows; ++r) {
      text({left - 10, bottom_ + side / 2 + 4, name(!layers_across, r), kLabelSize, kFaint, Anchor::end});
      for (std::int64_t c = 0; c < columns; ++c) {
        const std::int64_t layer = layers_across ? c : r, head = layers_across ? r : c;
        small_map(static_cast<std::size_t>(layer), head, left + static_cast<double>(c) * step, side);
      }
      bottom_ += step;
    }
    widen(left + static_cast<double>(columns) * step);
    if (n > kMostCells) {
      bottom_ += kLine - 4;
      text({kMargin, bottom_, "A cell of these maps is the largest weight of a patch of the text.", kLabelSize,
            kFaint});
    }
    if (!options_.from) return;
    bottom_ += kLine - 4;
    text({kMargin, bottom_,
          "Outlined, with their rank: the heads that go furthest beyond habits from “" + label(*options_.from) +
              "”; the line marks its row.",
          kLabelSize, kInk});
  }

  void small_map(std::size_t layer, std::int64_t head, double x, double side) {
    picture_.shapes.emplace_back(cells_of(map_, layer, head, x, bottom_, side, kMostCells));
    std::size_t rank = 0;
    while (rank < ranking_.size() && (ranking_[rank].layer_here != layer || ranking_[rank].head != head)) ++rank;
    const bool marked = rank < std::min(ranking_.size(), options_.marked) && ranking_[rank].beyond > 0;
    if (options_.from) {
      const double cell = side / static_cast<double>(map_.size());
      picture_.shapes.emplace_back(
          Rectangle{x, bottom_ + static_cast<double>(*options_.from) * cell, side, cell, kAccent, 0.6});
    }
    picture_.shapes.emplace_back(
        Rectangle{x - 0.5, bottom_ - 0.5, side + 1, side + 1, marked ? kAccent : kFaint, marked ? 2.5 : 0.5});
    if (marked)
      text({x + side - 4, bottom_ + 13, std::to_string(rank + 1), kLabelSize, kAccent, Anchor::end, true});
  }

  void large_map() {
    const std::int64_t n = map_.size();
    const double cell = std::clamp(640.0 / static_cast<double>(n), 2.0, 26.0), side = cell * static_cast<double>(n);
    const std::int64_t every = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(12 / cell)));
    double widest = 0;
    for (std::int64_t i = 0; i < n; i += every) widest = std::max(widest, text_width(label(i), kLabelSize));
    const double left = kMargin + widest + 14;
    bottom_ += widest * 0.87 + 14;
    picture_.shapes.emplace_back(cells_of(map_, 0, *options_.head, left, bottom_, side, n));
    picture_.shapes.emplace_back(Rectangle{left - 0.5, bottom_ - 0.5, side + 1, side + 1, kFaint, 1});
    for (std::int64_t i = 0; i < n; ++i) {
      // The chosen row keeps its label where others are left out, and those beside it give way.
      const bool is_from = options_.from == i, beside = options_.from && std::abs(i - *options_.from) < every;
      const double middle = (static_cast<double>(i) + 0.5) * cell;
      if (is_from || (i % every == 0 && !beside))
        text(
            {left - 6, bottom_ + middle + 4, label(i), kLabelSize, is_from ? kAccent : kInk, Anchor::end, is_from});
      if (i % every == 0)
        text({left + middle + 3, bottom_ - 6, label(i), kLabelSize, kInk, Anchor::start, false, -60});
    }
    if (options_.from)
      picture_.shapes.emplace_back(
          Rectangle{left, bottom_ + static_cast<double>(*options_.from) * cell, side, cell, kAccent, 1.5});
    // The last turned label leans out of the table.
    widen(left + side + widest / 2 + 8);
    bottom_ += side + 6;
    text({left, bottom_ + kLabelSize, "Rows look, columns are looked at.", kLabelSize, kFaint});
    bottom_ += kLine;
  }

  void legend() {
    constexpr double kCell = 34;
    bottom_ += kLine;
    double x = kMargin;
    text({x, bottom_, "weight", kLabelSize, kFaint});
    x += 56;
    for (const double weight : {0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0}) {
      picture_.shapes.emplace_back(Cells{x, bottom_ - 11, kCell, 13, 1, 1, {colour_of(weight)}});
      picture_.shapes.emplace_back(Rectangle{x, bottom_ - 11, kCell, 13, kFaint, 0.5});
      text({x + kCell / 2, bottom_ + 14, decimal(weight, "%g"), 10, kFaint, Anchor::middle});
      x += kCell;
    }
    bottom_ += kLine + 4;
  }

  void footer() {
    // In two lines, so that narrow pictures stay narrow.
    const std::string caveat = kMapCaveat;
    const std::size_t middle = caveat.find(". ") + 1;
    for (const std::string& line : {caveat.substr(0, middle), caveat.substr(middle + 1)}) {
      bottom_ += kLine - 2;
      text({kMargin, bottom_, line, kLabelSize, kInk});
    }
    bottom_ += kLine - 2;
    text({kMargin, bottom_,
          "Largest difference of a weight from float64: " + decimal(map_.fidelity, "%.1e") +
              (map_.rows_judged < map_.size() ? " (in " + std::to_string(map_.rows_judged) + " rows of each head)"
                                              : ""),
          kLabelSize, kFaint});
  }

  const AttentionMap& map_;
  const MapPictureOptions& options_;
  std::vector<HeadRow> ranking_;
  Picture picture_;
  double bottom_ = kMargin, right_ = 0;
};

}  // namespace

Picture draw_map(const AttentionMap& map, const MapPictureOptions& options) { return Page(map, options).draw(); }

}  // namespace attn::explain

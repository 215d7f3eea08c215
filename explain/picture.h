// Pictures as lists of shapes, drawn as SVG or PNG.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "attn/status.h"

namespace attn::explain {

/// 0 to 255 each.
struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
};

inline constexpr Colour kInk{33, 37, 41}, kFaint{134, 142, 150}, kPaper{255, 255, 255}, kAccent{214, 90, 0};

/// Lengths are pixels of the picture at its own size, from the upper left corner.
struct Rectangle {
  double x, y, width, height;
  Colour outline;
  double line_width = 1;
};

/// A half ellipse above the line from x to to_x at y.
struct Arc {
  double x, to_x, y, height;
  Colour colour;
  double line_width, opacity;
};

enum class Anchor : std::uint8_t { start, middle, end };

struct Text {
  double x, y;  ///< of the anchor, on the baseline
  std::string text;
  double size = 12;
  Colour colour = kInk;
  Anchor anchor = Anchor::start;
  bool bold = false;
  double turned = 0;  ///< degrees, clockwise, round the anchor
};

/// Coloured cells, one pixel each, shown without smoothing.
struct Cells {
  double x, y, width, height;
  std::int64_t columns, rows;
  std::vector<Colour> colours;  ///< [rows][columns]
};

struct Picture {
  double width = 0, height = 0;
  std::string title;  ///< what it shows, for those who can't see it
  std::vector<std::variant<Cells, Rectangle, Arc, Text>> shapes;
};

/// About how wide a text is drawn.
double text_width(const std::string& text, double size);

/// Fonts are those of the reader; text stays text. Errors: memory that can't be had.
Status draw_svg(const Picture& picture, std::string* svg);

/// `scale` pixels for each of the picture's own. Errors: more pixels than a PNG may have here; memory that can't be had.
Status draw_png(const Picture& picture, double scale, std::string* png);

}  // namespace attn::explain

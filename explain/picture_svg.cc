#include <cmath>
#include <cstdio>

#include "explain/picture_png.h"

namespace attn::explain {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

// A length, to a hundredth.
std::string length(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", number);
  std::string result = text;
  while (result.ends_with('0')) result.pop_back();
  if (result.ends_with('.')) result.pop_back();
  return result == "-0" ? "0" : result;
}

std::string attribute(const char* name, double number) {
  return " " + std::string(name) + "=\"" + length(number) + "\"";
}

std::string hex(Colour colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", colour.red, colour.green, colour.blue);
  return text;
}

// Source: RFC 4648.
std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned three = 0;
    for (std::size_t n = 0; n < 3; ++n)
      three = three << 8 | (i + n < bytes.size() ? static_cast<unsigned char>(bytes[i + n]) : 0U);
    for (std::size_t n = 0; n < 4; ++n) text += i + n > bytes.size() ? '=' : kDigits[three >> (18 - 6 * n) & 63];
  }
  return text;
}

// Writes each kind of shape.
struct Writer {
  std::string* svg;
  Status* status;

  void operator()(const Cells& cells) const {
    std::string png;
    const Status drawn = cells_as_png(cells, &png);
    if (!drawn.ok()) *status = drawn;
    *svg += "<image" + attribute("x", cells.x) + attribute("y", cells.y) + attribute("width", cells.width) +
            attribute("height", cells.height) +
            " preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64," +
            base64(png) + "\"/>\n";
  }

  void operator()(const Rectangle& shape) const {
    *svg += "<rect" + attribute("x", shape.x) + attribute("y", shape.y) + attribute("width", shape.width) +
            attribute("height", shape.height) + " fill=\"none\" stroke=\"" + hex(shape.outline) + "\"" +
            attribute("stroke-width", shape.line_width) + "/>\n";
  }

  void operator()(const Arc& arc) const {
    const double left = std::min(arc.x, arc.to_x), right = std::max(arc.x, arc.to_x);
    *svg += "<path d=\"M" + length(left) + " " + length(arc.y) + "A" + length((right - left) / 2) + " " +
            length(arc.height) + " 0 0 1 " + length(right) + " " + length(arc.y) + "\" fill=\"none\" stroke=\"" +
            hex(arc.colour) + "\"" + attribute("stroke-width", arc.line_width) + attribute("opacity", arc.opacity) +
            "/>\n";
  }

  void operator()(const Text& text) const {
    constexpr const char* kAnchors[] = {"start", "middle", "end"};
    *svg += "<text" + attribute("x", text.x) + attribute("y", text.y) + attribute("font-size", text.size) +
            " fill=\"" + hex(text.colour) + "\" text-anchor=\"" + kAnchors[static_cast<int>(text.anchor)] + "\"";
    if (text.bold) *svg += " font-weight=\"bold\"";
    if (text.turned != 0)
      *svg += " transform=\"rotate(" + length(text.turned) + " " + length(text.x) + " " + length(text.y) + ")\"";
    *svg += ">" + escaped(text.text) + "</text>\n";
  }
};

}  // namespace

double text_width(const std::string& text, double size) {
  double characters = 0;
  for (const char c : text) characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  return 0.66 * size * characters;
}

Status draw_svg(const Picture& picture, std::string* svg) {
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", picture.width) +
      attribute("height", picture.height) + " viewBox=\"0 0 " + length(picture.width) + " " +
      length(picture.height) + "\" role=\"img\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<title>" +
      escaped(picture.title) + "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"" + hex(kPaper) + "\"/>\n";
  Status status;
  for (const auto& shape : picture.shapes) std::visit(Writer{&text, &status}, shape);
  if (!status.ok()) return status;
  *svg = text + "</svg>\n";
  return {};
}

}  // namespace attn::explain

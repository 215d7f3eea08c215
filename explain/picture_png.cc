#include "explain/picture_png.h"

#include <cairo.h>

#include <cmath>
#include <memory>
#include <numbers>

namespace attn::explain {
namespace {

// Cairo's own limit on a side, and 64 million pixels in all.
constexpr double kMostSide = 32767, kMostPixels = 64e6;

struct Release {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
};
using Surface = std::unique_ptr<cairo_surface_t, Release>;
using Context = std::unique_ptr<cairo_t, Release>;

Status error_of(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return {};
  return Status::error("picture: " + std::string(cairo_status_to_string(status)) + "; draw .svg instead");
}

cairo_status_t append(void* png, const unsigned char* bytes, unsigned count) {
  static_cast<std::string*>(png)->append(reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

Status write_png(const Surface& surface, std::string* png) {
  std::string bytes;
  ATTN_RETURN_IF_ERROR(error_of(cairo_surface_write_to_png_stream(surface.get(), append, &bytes)));
  *png = std::move(bytes);
  return {};
}

Surface surface_of(const Cells& cells) {
  Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(cells.columns),
                                             static_cast<int>(cells.rows)));
  unsigned char* data = cairo_image_surface_get_data(surface.get());
  if (!data) return surface;
  const std::int64_t stride = cairo_image_surface_get_stride(surface.get());
  for (std::int64_t row = 0; row < cells.rows; ++row) {
    auto* to = reinterpret_cast<std::uint32_t*>(data + row * stride);
    for (std::int64_t column = 0; column < cells.columns; ++column) {
      const Colour colour = cells.colours[static_cast<std::size_t>(row * cells.columns + column)];
      to[column] = static_cast<std::uint32_t>(colour.red << 16 | colour.green << 8 | colour.blue);
    }
  }
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

void set_colour(cairo_t* context, Colour colour, double opacity = 1) {
  cairo_set_source_rgba(context, colour.red / 255.0, colour.green / 255.0, colour.blue / 255.0, opacity);
}

// Draws each kind of shape.
struct Painter {
  cairo_t* context;

  void operator()(const Cells& cells) const {
    const Surface image = surface_of(cells);
    cairo_save(context);
    cairo_translate(context, cells.x, cells.y);
    cairo_scale(context, cells.width / static_cast<double>(cells.columns),
                cells.height / static_cast<double>(cells.rows));
    cairo_set_source_surface(context, image.get(), 0, 0);
    cairo_pattern_set_filter(cairo_get_source(context), CAIRO_FILTER_NEAREST);
    cairo_paint(context);
    cairo_restore(context);
  }

  void operator()(const Rectangle& shape) const {
    set_colour(context, shape.outline);
    cairo_set_line_width(context, shape.line_width);
    cairo_rectangle(context, shape.x, shape.y, shape.width, shape.height);
    cairo_stroke(context);
  }

  void operator()(const Arc& arc) const {
    const double width = std::abs(arc.to_x - arc.x) / 2;
    if (width == 0 || arc.height == 0) return;
    cairo_save(context);
    cairo_translate(context, (arc.x + arc.to_x) / 2, arc.y);
    cairo_scale(context, width, arc.height);
    cairo_new_sub_path(context);
    cairo_arc(context, 0, 0, 1, std::numbers::pi, 2 * std::numbers::pi);
    cairo_restore(context);
    set_colour(context, arc.colour, arc.opacity);
    cairo_set_line_width(context, arc.line_width);
    cairo_stroke(context);
  }

  void operator()(const Text& text) const {
    cairo_select_font_face(context, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                           text.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(context, text.size);
    cairo_text_extents_t extents;
    cairo_text_extents(context, text.text.c_str(), &extents);
    const double back =
        text.anchor == Anchor::start ? 0 : extents.x_advance / (text.anchor == Anchor::middle ? 2 : 1);
    set_colour(context, text.colour);
    cairo_save(context);
    cairo_translate(context, text.x, text.y);
    cairo_rotate(context, text.turned * std::numbers::pi / 180);
    cairo_move_to(context, -back, 0);
    cairo_show_text(context, text.text.c_str());
    cairo_restore(context);
  }
};

}  // namespace

Status cells_as_png(const Cells& cells, std::string* png) { return write_png(surface_of(cells), png); }

Status draw_png(const Picture& picture, double scale, std::string* png) {
  const double width = std::ceil(picture.width * scale), height = std::ceil(picture.height * scale);
  if (width > kMostSide || height > kMostSide || width * height > kMostPixels) {
    return Status::error("picture: " + std::to_string(static_cast<std::int64_t>(width)) + " x " +
                         std::to_string(static_cast<std::int64_t>(height)) +
                         " pixels are more than are drawn here; choose a layer or a head, or draw .svg");
  }
  const Surface surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)));
  const Context context(cairo_create(surface.get()));
  ATTN_RETURN_IF_ERROR(error_of(cairo_status(context.get())));
  set_colour(context.get(), kPaper);
  cairo_paint(context.get());
  cairo_scale(context.get(), scale, scale);
  for (const auto& shape : picture.shapes) std::visit(Painter{context.get()}, shape);
  ATTN_RETURN_IF_ERROR(error_of(cairo_status(context.get())));
  return write_png(surface, png);
}

}  // namespace attn::explain

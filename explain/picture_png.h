// Cells as a PNG file of their own, which SVG can hold.
#pragma once

#include <string>

#include "explain/picture.h"

namespace attn::explain {

/// One pixel a cell. Errors: as draw_png().
Status cells_as_png(const Cells& cells, std::string* png);

}  // namespace attn::explain

// Maps as pictures: all heads as a grid, one head large, and arcs from a chosen token.
#pragma once

#include <cstdint>
#include <optional>

#include "explain/attention_map.h"
#include "explain/picture.h"

namespace attn::explain {

struct MapPictureOptions {
  std::optional<std::int64_t> from = std::nullopt;  ///< the token whose rows are marked, and whose arcs are drawn
  std::optional<std::int64_t> head =
      std::nullopt;         ///< one head large, of a map of one layer; absent: all as a grid
  std::size_t marked = 10;  ///< heads of the ranking that are marked in the grid
};

/// The caveat and the map's fidelity are in the picture.
Picture draw_map(const AttentionMap& map, const MapPictureOptions& options);

}  // namespace attn::explain

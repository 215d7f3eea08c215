// A map as a page that needs no model and no network.
#pragma once

#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "explain/attention_map.h"

namespace attn::cli {

/// What the page shows as "map": the map with its weights as bytes, round(255·√w), in base64, of causal maps those that a
/// query may give; of one head, if it is given. Throws Failure{2} where the page would be larger than 16 MB.
nlohmann::json page_map(const explain::AttentionMap& map, std::optional<std::int64_t> head,
                        std::optional<std::int64_t> from);

}  // namespace attn::cli

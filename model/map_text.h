// The weights of every head for a text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/attention_map.h"
#include "model/text_model.h"

namespace attn::model {

struct MapOptions {
  std::optional<std::int64_t> layer = std::nullopt;  ///< this one alone; absent: all
  /// The table of weights may take so many bytes.
  std::int64_t most_bytes = std::int64_t{1} << 30;
  /// Called after each layer, from the calling thread.
  std::function<void()> layer_done = nullptr;
};

/// Runs the tokens through the model and keeps each layer's weights, which the engine computes from that layer's q and k; each
/// map is held against float64. `rows` becomes what TextModel::run() gives, if asked for.
/// O(layers · heads · tokens²) memory. Errors: no such layer; no token; more tokens than the model has positions; more than `most_bytes`; those
/// of TextModel::run().
Status map_tokens(const TextModel& model, std::span<const Token> tokens, const MapOptions& options,
                  explain::AttentionMap* map, std::vector<float>* rows = nullptr);

}  // namespace attn::model

#include "explain/cost.h"

#include <algorithm>

#include "attn/numerics.h"

namespace attn::explain {
namespace {

// Rows of the engine's taller tiles.
constexpr double kTileRows = 96;
constexpr double kScoreBytes = 4;

}  // namespace

Cost cost_of(const CostSizes& sizes) {
  const double pairs = sizes.causal ? sizes.tokens * (sizes.tokens + 1) / 2 : sizes.tokens * sizes.tokens;
  Cost cost{};
  cost.scores = pairs * sizes.heads * sizes.layers * sizes.batch;
  cost.flops = cost.scores * 4 * sizes.head_dim;
  cost.table_bytes = sizes.tokens * sizes.tokens * sizes.heads * sizes.layers * sizes.batch * kScoreBytes;
  cost.tile_bytes = std::min(sizes.tokens, kTileRows) * std::min<double>(sizes.tokens, kBlockKeys) * kScoreBytes;
  cost.kv_cache_bytes =
      2 * sizes.tokens * sizes.kv_heads * sizes.head_dim * sizes.layers * sizes.batch * sizes.cache_element_bytes;
  return cost;
}

}  // namespace attn::explain

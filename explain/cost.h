// What attention over n tokens takes, before anyone runs it.
#pragma once

namespace attn::explain {

/// Sizes as doubles: products of 64-bit sizes don't fit into 64 bits, and nobody needs their last digit.
struct CostSizes {
  double tokens = 0, batch = 1, heads = 1, kv_heads = 1, head_dim = 128, layers = 1;
  double cache_element_bytes = 4;
  bool causal = false;
};

struct Cost {
  double scores;          ///< pairs of a query and a key, in all heads and layers
  double flops;           ///< of both products: 4·head_dim a score
  double table_bytes;     ///< of all scores in f32, if they were stored
  double tile_bytes;      ///< of the scores that are there at a time, a thread
  double kv_cache_bytes;  ///< keys and values of all layers
};

Cost cost_of(const CostSizes& sizes);

}  // namespace attn::explain

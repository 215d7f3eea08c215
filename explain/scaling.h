// Why scores are divided by √d: what scores of dimension d do to a softmax and to its gradient.
#pragma once

#include <cstdint>
#include <vector>

namespace attn::explain {

/// A softmax and how much it still learns.
struct SoftmaxAtWork {
  std::vector<double> scores, weights;
  /// The size of ∂weights/∂scores, the root of the sum of its squares: 0 where one weight is 1.
  double gradient = 0;
};

SoftmaxAtWork softmax_at_work(const std::vector<double>& scores);

/// Products of a random query of dimension d with random keys, all numbers standard normal, and the same divided by √d.
struct Scaling {
  double spread = 0, scaled_spread = 0;  ///< standard deviations of many such products
  SoftmaxAtWork plain, scaled;           ///< over the first keys
};

/// The same numbers for the same `seed`, everywhere. `dim` at least 1. O(dim) for each of 2,000 keys.
Scaling scaling_of(std::int64_t dim, std::int64_t keys, std::uint32_t seed);

}  // namespace attn::explain

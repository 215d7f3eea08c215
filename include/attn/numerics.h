// The constants that fix the order of arithmetic. docs/numerics.md tells the whole order.
#pragma once

#include <cstdint>

namespace attn {

/// Keys that lie side by side in a packed unit `[d][kUnitKeys]`.
inline constexpr std::int64_t kUnitKeys = 16;

/// Virtual lanes of a row sum: the weight of key j is added to lane j mod kSumLanes.
inline constexpr std::int64_t kSumLanes = 64;

/// The running maximum and sum of a row step once a block; blocks start at multiples of this position.
inline constexpr std::int64_t kBlockKeys = 256;

/// Every segment starts from the empty state, and states fold left. Partial results that are cut at
/// every multiple of this position merge to the bits of the whole.
inline constexpr std::int64_t kSegmentKeys = 2048;

/// The version of the order above: results are comparable as bytes while it stays the same.
inline constexpr int kArithmeticVersion = 1;

}  // namespace attn

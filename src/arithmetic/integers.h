// Whole numbers divided and rounded up.
#pragma once

#include <cstdint>

namespace attn {

/// ⌈a / b⌉ for a ≥ 0, b > 0.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

/// The least multiple of `multiple` that is not below n ≥ 0.
constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return divide_up(n, multiple) * multiple; }

}  // namespace attn

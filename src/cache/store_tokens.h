// Rows of keys and values to the units of a cache.
#pragma once

#include <cstdint>

#include "src/cached_keys.h"
#include "src/kernels/kernels.h"

namespace attn {

/// `count` rows become the keys, or the values, of the unit's tokens from `first` on; first + count ≤ kUnitKeys.
void store_keys(const UnitLayout& layout, const SourceRows& rows, std::int64_t first, std::int64_t count,
                std::byte* unit);
void store_values(const UnitLayout& layout, const SourceRows& rows, std::int64_t first, std::int64_t count,
                  std::byte* unit);

/// Zeros for the first `tokens` tokens of a page, in all heads.
void clear_tokens(const PageLayout& layout, std::int64_t tokens, const Page& page);

/// The first `tokens` tokens of a page, of all heads, to another one.
void copy_tokens(const PageLayout& layout, const Page& from, std::int64_t tokens, const Page& to);

}  // namespace attn

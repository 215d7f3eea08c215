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

/// Calls `visit(head, offset, bytes)` for the units that hold a page's first tokens: of each head those of keys, then those
/// of values; `offset` counts from the head's part of the page.
template <class Visit>
void for_units(const PageLayout& layout, std::int64_t tokens, const Visit& visit) {
  const std::int64_t units = divide_up(tokens, kUnitKeys);
  for (std::int64_t head = 0; head < layout.kv_heads; ++head) {
    visit(head, std::int64_t{0}, static_cast<std::size_t>(units * layout.unit.key_bytes()));
    visit(head, layout.value_offset(0), static_cast<std::size_t>(units * layout.unit.value_bytes()));
  }
}

/// Zeros for the first `tokens` tokens of a page, in all heads.
void clear_tokens(const PageLayout& layout, std::int64_t tokens, const Page& page);

/// The first `tokens` tokens of a page, of all heads, to another one.
void copy_tokens(const PageLayout& layout, const Page& from, std::int64_t tokens, const Page& to);

}  // namespace attn

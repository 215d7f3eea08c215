// The keys and values of a cache, as one call reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/units.h"

namespace attn {

/// A page holds `page_tokens` tokens: head after head, all units of keys, then all units of values.
struct PageLayout {
  UnitLayout unit;
  std::int64_t kv_heads = 0;
  std::int64_t page_tokens = 0;  // a multiple of kUnitKeys

  std::int64_t page_units() const { return page_tokens / kUnitKeys; }
  std::int64_t head_bytes() const { return page_units() * (unit.key_bytes() + unit.value_bytes()); }
  std::int64_t page_bytes() const { return kv_heads * head_bytes(); }

  /// Where the unit that holds the token lies in its page.
  std::int64_t key_unit(std::int64_t head, std::int64_t token) const {
    return head * head_bytes() + token % page_tokens / kUnitKeys * unit.key_bytes();
  }
  std::int64_t value_unit(std::int64_t head, std::int64_t token) const {
    return head * head_bytes() + page_units() * unit.key_bytes() +
           token % page_tokens / kUnitKeys * unit.value_bytes();
  }
};

/// A page, and how many sequences hold it.
struct Page {
  std::byte* memory = nullptr;
  std::int64_t users = 0;
};

/// A sequence: its pages, front to back; nullptr where a page was dropped.
struct CachedSequence {
  std::span<const Page* const> pages;
  std::int64_t tokens = 0;
  std::int64_t dropped_from = 0, dropped_to = 0;  // these tokens are gone: [from, to)
};

struct CachedKeys {
  PageLayout layout;
  std::span<const CachedSequence> sequences;  // of the batch
  const std::byte* empty_page = nullptr;      // zeros, read in place of a dropped page

  const std::byte* page_of(std::int64_t sequence, std::int64_t token) const {
    const Page* page = sequences[sequence].pages[token / layout.page_tokens];
    return page ? page->memory : empty_page;
  }
  const std::byte* key_unit(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
    return page_of(sequence, token) + layout.key_unit(head, token);
  }
  const std::byte* value_unit(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
    return page_of(sequence, token) + layout.value_unit(head, token);
  }
};

}  // namespace attn

// The keys and values of a cache, as one call reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/units.h"

namespace attn {

/// A page holds `page_tokens` tokens: for each head all units of keys, then all units of values.
struct PageLayout {
  UnitLayout unit;
  std::int64_t kv_heads = 0;
  std::int64_t page_tokens = 0;  // a multiple of kUnitKeys

  std::int64_t page_units() const { return page_tokens / kUnitKeys; }
  std::int64_t head_bytes() const { return page_units() * (unit.key_bytes() + unit.value_bytes()); }
  std::int64_t page_bytes() const { return kv_heads * head_bytes(); }

  /// Where the unit that holds the token lies in its page's part of a head.
  std::int64_t key_offset(std::int64_t token) const { return token % page_tokens / kUnitKeys * unit.key_bytes(); }
  std::int64_t value_offset(std::int64_t token) const {
    return page_units() * unit.key_bytes() + token % page_tokens / kUnitKeys * unit.value_bytes();
  }
};

/// A page, and how many sequences hold it. Neighbouring pages lie head by head, so that a head's tokens follow each other
/// through many pages: reading jumps less. (Jumps cost address translation: on a virtual machine 2.6 µs each, a fifth of
/// decode with pages of 128 KiB a head.)
struct Page {
  std::byte* memory = nullptr;
  std::int64_t head_stride = 0;
  std::int64_t users = 0;

  std::byte* head(std::int64_t index) const { return memory + index * head_stride; }
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
  const Page* empty_page = nullptr;           // zeros, read in place of a dropped page

  const std::byte* key_unit(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
    return page_of(sequence, token).head(head) + layout.key_offset(token);
  }
  const std::byte* value_unit(std::int64_t sequence, std::int64_t head, std::int64_t token) const {
    return page_of(sequence, token).head(head) + layout.value_offset(token);
  }

 private:
  const Page& page_of(std::int64_t sequence, std::int64_t token) const {
    const Page* page = sequences[sequence].pages[token / layout.page_tokens];
    return page ? *page : *empty_page;
  }
};

}  // namespace attn

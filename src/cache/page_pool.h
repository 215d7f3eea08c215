// The pages of a cache: memory in slabs that never move, free pages, and pages that sequences share.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "attn/status.h"
#include "src/cached_keys.h"
#include "src/system_memory.h"

namespace attn {

class PagePool {
 public:
  /// Pages which together take no more than `most_bytes`.
  PagePool(const PageLayout& layout, std::int64_t most_bytes)
      : heads_(layout.kv_heads), head_bytes_(layout.head_bytes()), most_bytes_(most_bytes) {}

  /// Sees to it that at least `pages` are free. A new slab is at least a quarter of what there is, so that n pages cost
  /// O(n).
  Status reserve(std::int64_t pages);

  /// A free page, which reserve() has promised, with one user. Its memory holds anything.
  Page* take();
  static void share(Page* page) { ++page->users; }
  void leave(Page* page);

  std::int64_t page_bytes() const { return heads_ * head_bytes_; }
  std::int64_t pages() const { return page_count_; }
  std::int64_t free_pages() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t bytes() const { return pages() * page_bytes(); }

  /// For tests: every byte of the free pages.
  void fill_free_pages(std::byte byte);

 private:
  Status add_slab(std::int64_t pages);

  std::int64_t heads_, head_bytes_, most_bytes_;
  std::vector<std::unique_ptr<std::byte, FreeMemory>> slabs_;
  std::deque<std::vector<Page>> slab_pages_;  // of each slab; they never move
  std::int64_t page_count_ = 0;
  std::vector<Page*> free_;  // has room for all pages, so that giving one back can't fail
};

}  // namespace attn

#include "src/cache/page_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/arithmetic/integers.h"
#include "src/sentence.h"
#include "src/system_memory.h"

namespace attn {

Status PagePool::reserve(std::int64_t wanted) {
  const std::int64_t missing = wanted - free_pages();
  if (missing <= 0) return {};
  const std::int64_t allowed = most_bytes_ / page_bytes() - pages();
  if (missing > allowed) {
    return error("cache: ", wanted, " more pages of ", page_bytes(), " bytes are needed, ", free_pages(),
                 " are free and ", allowed, " more fit most_bytes ", most_bytes_,
                 "; release or truncate sequences, or allow more");
  }
  constexpr std::int64_t kSmallestSlab = 2 << 20;
  const std::int64_t comfortable = std::max(divide_up(kSmallestSlab, page_bytes()), pages() / 4);
  const std::int64_t more = std::min(std::max(missing, comfortable), allowed);
  // Where there is no memory for comfort, what is needed may do.
  const Status status = add_slab(more);
  return status.ok() || more == missing ? status : add_slab(missing);
}

Status PagePool::add_slab(std::int64_t pages) {
  std::int64_t bytes = 0;
  std::unique_ptr<std::byte, FreeMemory> memory;
  if (!__builtin_mul_overflow(pages, page_bytes(), &bytes)) memory.reset(allocate_large(bytes));
  if (!memory) {
    return error("cache: ", pages, " pages of ", page_bytes(),
                 " bytes could not be had; release sequences, or make pages smaller");
  }
  // All that may fail comes first.
  free_.reserve(static_cast<std::size_t>(page_count_) + static_cast<std::size_t>(pages));
  slabs_.reserve(slabs_.size() + 1);
  std::vector<Page> slab;
  for (std::int64_t i = 0; i < pages; ++i) slab.push_back({memory.get() + i * head_bytes_, pages * head_bytes_, 0});
  slab_pages_.push_back(std::move(slab));
  page_count_ += pages;
  slabs_.push_back(std::move(memory));
  for (std::int64_t i = pages - 1; i >= 0; --i)  // the first is taken first
    free_.push_back(&slab_pages_.back()[static_cast<std::size_t>(i)]);
  return {};
}

Page* PagePool::take() {
  Page* page = free_.back();
  free_.pop_back();
  page->users = 1;
  return page;
}

void PagePool::leave(Page* page) {
  if (--page->users == 0) free_.push_back(page);
}

void PagePool::fill_free_pages(std::byte byte) {
  for (const Page* page : free_) {
    for (std::int64_t head = 0; head < heads_; ++head)
      std::memset(page->head(head), static_cast<int>(byte), static_cast<std::size_t>(head_bytes_));
  }
}

}  // namespace attn

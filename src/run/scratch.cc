#include "src/run/scratch.h"

#include <sys/mman.h>

#include <cstdlib>

namespace attn {
namespace {

constexpr std::int64_t kKeptBytes = 8 << 20;  // a thread keeps this much between calls, no more
constexpr std::int64_t kHugePage = 2 << 20;

// What this thread keeps. A call inside a call (an executor's task that calls the library) gets memory of its own.
struct Kept {
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  bool in_use = false;
  ~Kept() { std::free(memory); }
};
thread_local Kept kept;

}  // namespace

std::byte* allocate_pages(std::int64_t bytes) {
  if (bytes > Carver::kTooMuch / 2) return nullptr;
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : 4096;
  const std::int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  // Huge pages: one page fault for 2 MiB instead of 512, and fewer TLB misses. A wish, not a need.
  if (memory && bytes >= kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
  return memory;
}

Scratch::Scratch(std::int64_t bytes) {
  if (bytes > kKeptBytes || kept.in_use) {
    data_ = allocate_pages(bytes);
    owned_ = true;
    return;
  }
  if (kept.bytes < bytes) {
    std::free(kept.memory);
    kept.memory = allocate_pages(bytes);
    kept.bytes = kept.memory ? bytes : 0;
  }
  kept.in_use = true;
  data_ = kept.memory;
}

Scratch::~Scratch() {
  if (owned_) {
    std::free(data_);
  } else {
    kept.in_use = false;
  }
}

}  // namespace attn

#include "model/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>

namespace attn::model {
namespace {

constexpr std::int64_t kLine = 64, kHugePage = 2 << 20;

// Address space that is taken at once; what is never touched takes no memory.
constexpr std::int64_t kBlockBytes = std::int64_t{64} << 20;

std::int64_t round_up(std::int64_t bytes, std::int64_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

void WeightMemory::Unmap::operator()(std::byte* memory) const { ::munmap(memory, static_cast<std::size_t>(bytes)); }

std::byte* WeightMemory::allocate(std::int64_t bytes) {
  if (bytes < 0 || bytes > std::numeric_limits<std::int64_t>::max() / 2) return nullptr;
  bytes = round_up(bytes, kLine);
  if (bytes > left_) {
    const std::int64_t size = round_up(std::max(bytes, kBlockBytes), kHugePage) + kHugePage;
    void* mapped =
        ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    blocks_.emplace_back(static_cast<std::byte*>(mapped), Unmap{size});
    ::madvise(mapped, static_cast<std::size_t>(size), MADV_HUGEPAGE);  // a wish, not a need
    const std::int64_t skipped = -reinterpret_cast<std::intptr_t>(mapped) & (kHugePage - 1);
    next_ = static_cast<std::byte*>(mapped) + skipped;
    left_ = size - skipped;
  }
  std::byte* memory = next_;
  next_ += bytes;
  left_ -= bytes;
  return memory;
}

}  // namespace attn::model

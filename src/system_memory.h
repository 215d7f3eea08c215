// Large memory from the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace attn {

/// For std::unique_ptr to memory of std::malloc and its like.
struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// Whole pages of the system, huge ones where it fills one; nullptr where it can't be had. Freed by std::free.
std::byte* allocate_large(std::int64_t bytes);

}  // namespace attn

#include "src/run/scratch.h"

#include <cstdlib>

#include "src/system_memory.h"

namespace attn {
namespace {

constexpr std::int64_t kKeptBytes = 8 << 20;  // a thread keeps this much between calls, no more

// What this thread keeps. A call inside a call (an executor's task that calls the library) gets memory of its own.
struct Kept {
  std::byte* memory = nullptr;
  std::int64_t bytes = 0;
  bool in_use = false;
  ~Kept() { std::free(memory); }
};
thread_local Kept kept;

}  // namespace

Scratch::Scratch(std::int64_t bytes) {
  if (bytes > kKeptBytes || kept.in_use) {
    data_ = allocate_large(bytes);
    owned_ = true;
    return;
  }
  if (kept.bytes < bytes) {
    std::free(kept.memory);
    kept.memory = allocate_large(bytes);
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

// Memory beyond the tensors: one piece a call, carved up by those who use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace attn {

/// Takes aligned pieces off a stretch of memory; without memory it only measures.
class Carver {
 public:
  explicit Carver(std::byte* memory = nullptr) : memory_(memory) {}

  /// `count` numbers, or count × each × each of them.
  template <class T>
  T* take(std::int64_t count, std::int64_t rows = 1, std::int64_t blocks = 1) {
    std::byte* piece = memory_ ? memory_ + used_ : nullptr;
    std::int64_t bytes = static_cast<std::int64_t>(sizeof(T)), rounded;
    if (__builtin_mul_overflow(count, bytes, &bytes) || __builtin_mul_overflow(rows, bytes, &bytes) ||
        __builtin_mul_overflow(blocks, bytes, &bytes) || __builtin_add_overflow(bytes, kAlignment - 1, &rounded) ||
        __builtin_add_overflow(used_, rounded / kAlignment * kAlignment, &used_)) {
      used_ = kTooMuch;
    }
    return reinterpret_cast<T*>(piece);
  }

  /// Bytes so far; kTooMuch where they do not fit 63 bits.
  std::int64_t used() const { return used_; }
  static constexpr std::int64_t kTooMuch = std::numeric_limits<std::int64_t>::max();

  static constexpr std::int64_t kAlignment = 64;  // a cache line, and the widest vector

 private:
  std::byte* memory_;
  std::int64_t used_ = 0;
};

/// Scratch memory of one call, kept by the thread for its next one while it is small.
class Scratch {
 public:
  /// `data()` is nullptr where the memory can't be had.
  explicit Scratch(std::int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  bool owned_ = false;
};

}  // namespace attn

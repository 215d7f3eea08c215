// The default floating-point environment for a scope.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace attn {

/// Round to nearest, denormals kept, no traps: set on entry and the caller's restored on exit. A caller that
/// flushes denormals (as inference programs do) would otherwise get other bits.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : saved_(read()) {
    if (saved_ != kDefault) write(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if (read() != saved_) write(saved_);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  using Word = unsigned;
  static constexpr Word kDefault = 0x1F80;
  static Word read() { return _mm_getcsr(); }
  static void write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kDefault = 0;
  static Word read() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  struct Word {
    std::fenv_t environment;
    bool operator!=(const Word&) const { return true; }
  };
  static inline const Word kDefault{*FE_DFL_ENV};
  static Word read() {
    Word word;
    std::fegetenv(&word.environment);
    return word;
  }
  static void write(const Word& word) { std::fesetenv(&word.environment); }
#endif

  Word saved_;
};

}  // namespace attn

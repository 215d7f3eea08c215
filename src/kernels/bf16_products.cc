// Which 16-bit instructions the processor has, and the system lets this process use.
#include "src/kernels/kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#endif

namespace attn {

#if defined(__x86_64__) && defined(__linux__)
namespace {

constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;  // leaf 7, edx
constexpr unsigned kAvx512Bf16 = 1U << 5;                     // leaf 7, subleaf 1, eax

struct Processor {
  bool matrix = false, dot = false;
};

Processor processor() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  Processor found;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return found;
  found.matrix = (edx & kAmxBf16) != 0 && (edx & kAmxTile) != 0;
  found.dot = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvx512Bf16) != 0;
  return found;
}

// The registers hold 8 KiB a thread: Linux (5.16 and later) saves them only for a process that asks. All its threads,
// present and future, then have them.
bool system_grants_matrix_registers() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Bf16Products find() {
  const Processor here = processor();
  if (!here.dot) return Bf16Products::none;  // rounding to bf16 needs it, too
  const char* wish = std::getenv("ATTN_BF16");
  const bool dot_wished = wish != nullptr && std::string_view(wish) == "dot";
  return here.matrix && !dot_wished && system_grants_matrix_registers() ? Bf16Products::matrix : Bf16Products::dot;
}

}  // namespace

Bf16Products bf16_products_here() {
  static const Bf16Products here = find();
  return here;
}
#else
Bf16Products bf16_products_here() { return Bf16Products::none; }
#endif

}  // namespace attn

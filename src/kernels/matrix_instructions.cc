// Whether the processor has AMX for bf16, and the system lets this process use it.
#include "src/kernels/kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace attn {

#if defined(__x86_64__) && defined(__linux__)
namespace {

constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;  // leaf 7, edx
constexpr unsigned kAvx512Bf16 = 1U << 5;                     // leaf 7, subleaf 1, eax

bool processor_has_them() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  if ((edx & kAmxBf16) == 0 || (edx & kAmxTile) == 0) return false;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvx512Bf16) != 0;
}

// The registers hold 8 KiB a thread: Linux (5.16 and later) saves them only for a process that asks. All its threads,
// present and future, then have them.
bool system_grants_them() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_matrix_instructions() {
  static const bool has = processor_has_them() && system_grants_them();
  return has;
}
#else
bool has_matrix_instructions() { return false; }
#endif

}  // namespace attn

// What this machine can do at most: the yardstick for speed.
#pragma once

#include "attn/dtype.h"
#include "attn/executor.h"
#include "attn/export.h"
#include "attn/status.h"

namespace ATTN_EXPORT attn {

struct Machine {
  double fma_gflops =
      0;                 ///< fused multiply-adds on registers alone, two operations each, all threads, 1e9 a second
  double read_gbps = 0;  ///< reading a buffer in huge pages that no cache holds, all threads, 1e9 bytes a second
  int threads = 0;       ///< how many measured
};

/// Measures with the current SIMD target, in about half a second and 256 MiB of memory. `threads` 0: one a
/// processor. `compute` f32 or f64 (16-bit types are computed in f32). An error where the memory or a SIMD target is missing.
Status measure_machine(int threads, DType compute, Machine* machine);

/// The multiply-adds alone, on the executor's threads, at the clock that runs now: in about a millisecond. Machines are
/// shared and drift, and heavy code lowers a core's clock for milliseconds (by 12 % on one that was measured): for a
/// yardstick, measure right before and after each thing that is compared.
Status measure_fma(Executor& executor, DType compute, double* gflops);

/// Reads a buffer in huge pages that no cache holds, again and again.
class MemoryReader {
 public:
  /// Takes the memory: 256 MiB. `ok()` is false where it can't be had.
  MemoryReader();
  ~MemoryReader();
  MemoryReader(const MemoryReader&) = delete;
  MemoryReader& operator=(const MemoryReader&) = delete;

  bool ok() const { return memory_ != nullptr; }

  /// One pass on the executor's threads, in 1e9 bytes a second.
  Status read(Executor& executor, double* gbps);

 private:
  float* memory_ = nullptr;
};

}  // namespace attn

// How long a shape takes, next to what the machine can do at that moment.
#pragma once

#include "attn/executor.h"
#include "attn/machine.h"
#include "cli/bench_shapes.h"

namespace attn::cli {

/// Medians over the repetitions; the share is the median of each repetition's own share.
struct BenchResult {
  double milliseconds = 0;
  double gflops = 0;
  double gbps = 0;         ///< k and v a second; of decode
  double peak_gflops = 0;  ///< the FMA peak right before and after each call
  double read_gbps = 0;    ///< the read bandwidth between the calls; of decode
  double share = 0;        ///< of the FMA peak, of decode of the read bandwidth
};

/// Calls the shape again and again, at least five times and for about `seconds`, and measures the machine in between:
/// shared machines drift by the second. Throws Failure{2} where memory is missing.
BenchResult measure(const BenchShape& shape, Executor& executor, MemoryReader* memory, double seconds);

}  // namespace attn::cli

#include "attn/machine.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "src/kernels/kernels.h"
#include "src/run/scratch.h"
#include "src/sentence.h"

namespace attn {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The median of a few runs: what the machine sustains now, which is what a call next to it can have. (The best of them
// is a moment's luck on a shared machine: up to 10 % more.)
template <class Context>
double median_seconds(Executor& executor, void (*task)(void*, std::int64_t, int), Context* context) {
  constexpr int kRuns = 9;
  double seconds[kRuns];
  for (double& run : seconds) {
    const double start = seconds_now();
    executor.run(executor.threads(), task, context);
    run = seconds_now() - start;
  }
  std::nth_element(seconds, seconds + kRuns / 2, seconds + kRuns);
  return seconds[kRuns / 2];
}

// One task a thread, each the same work.
template <class T>
struct MultiplyAdds {
  const KernelSet<T>& kernels;
  std::int64_t steps;
  std::vector<double> flops;  // of each task
};

template <class T>
void multiply_add(void* context, std::int64_t index, int /*worker*/) {
  auto& work = *static_cast<MultiplyAdds<T>*>(context);
  T sink[3] = {T(0.5), T(0.25), T(0)};
  work.flops[index] = work.kernels.multiply_adds(work.steps, sink);
}

template <class T>
double fma_gflops(const KernelSet<T>& kernels, Executor& executor) {
  MultiplyAdds<T> work{kernels, /*steps=*/1 << 21, std::vector<double>(executor.threads())};
  const double seconds = median_seconds(executor, multiply_add<T>, &work);
  return std::accumulate(work.flops.begin(), work.flops.end(), 0.0) / seconds / 1e9;
}

struct Reads {
  const KernelSet<float>& kernels;
  const float* memory;
  std::int64_t count;  // numbers a task reads
};

void read_part(void* context, std::int64_t index, int /*worker*/) {
  const auto& work = *static_cast<Reads*>(context);
  volatile float sink = work.kernels.read_all(work.memory + index * work.count, work.count);
  (void)sink;
}

Status measure_read(const Kernels& kernels, Executor& executor, double* gbps) {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  const Scratch memory(kBytes);
  if (!memory.data()) return error("memory: ", kBytes, " bytes could not be had to measure reading");
  std::fill_n(memory.data(), kBytes, std::byte{0});  // touched, so that reading meets no page faults
  Reads work{kernels.f32, reinterpret_cast<const float*>(memory.data()),
             kBytes / static_cast<std::int64_t>(sizeof(float)) / executor.threads()};
  *gbps = static_cast<double>(kBytes) / median_seconds(executor, read_part, &work) / 1e9;
  return {};
}

}  // namespace

Status measure_fma(Executor& executor, DType compute, double* gflops) {
  const Kernels* kernels = kernels_for(current_isa());
  if (!kernels) return error("isa: scalar has no peak worth measuring; force_isa another one");
  *gflops = compute == DType::f64 ? fma_gflops(kernels->f64, executor) : fma_gflops(kernels->f32, executor);
  return {};
}

Status measure_machine(int threads, DType compute, Machine* machine) {
  if (threads < 0) return error("threads: ", threads, "; 0 (one a processor) or more are possible");
  const auto pool = make_thread_pool(threads);
  Machine measured;
  measured.threads = pool->threads();
  ATTN_RETURN_IF_ERROR(measure_fma(*pool, compute, &measured.fma_gflops));
  ATTN_RETURN_IF_ERROR(measure_read(*kernels_for(current_isa()), *pool, &measured.read_gbps));
  *machine = measured;
  return {};
}

}  // namespace attn

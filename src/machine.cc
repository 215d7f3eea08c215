#include "attn/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "src/kernels/kernels.h"
#include "src/sentence.h"
#include "src/system_memory.h"

namespace attn {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <std::size_t kCount>
double median(double (&values)[kCount]) {
  std::nth_element(values, values + kCount / 2, values + kCount);
  return values[kCount / 2];
}

// One task a thread, each the same work; each times itself, so that waking it does not count.
template <class T>
struct MultiplyAdds {
  const KernelSet<T>& kernels;
  std::int64_t steps;
  std::vector<double> gflops;  // of each task
};

template <class T>
void multiply_add(void* context, std::int64_t index, int /*worker*/) {
  auto& work = *static_cast<MultiplyAdds<T>*>(context);
  T sink[3] = {T(0.5), T(0.25), T(0)};
  const double start = seconds_now();
  const double flops = work.kernels.multiply_adds(work.steps, sink);
  work.gflops[index] = flops / (seconds_now() - start) / 1e9;
}

// The median of a few runs: what the machine sustains now, which is what a call next to it can have. (The best of them
// is a moment's luck on a shared machine: up to 10 % more.)
template <class T>
double fma_gflops(const KernelSet<T>& kernels, Executor& executor, std::int64_t steps) {
  double runs[9];
  for (double& run : runs) {
    MultiplyAdds<T> work{kernels, steps, std::vector<double>(executor.threads())};
    executor.run(executor.threads(), multiply_add<T>, &work);
    run = std::accumulate(work.gflops.begin(), work.gflops.end(), 0.0);
  }
  return median(runs);
}

Status measure_fma(Executor& executor, DType compute, std::int64_t steps, double* gflops) {
  const Kernels* kernels = kernels_for(current_isa());
  if (!kernels) return error("isa: scalar has no peak worth measuring; force_isa another one");
  *gflops =
      compute == DType::f64 ? fma_gflops(kernels->f64, executor, steps) : fma_gflops(kernels->f32, executor, steps);
  return {};
}

constexpr std::int64_t kReadBytes = std::int64_t{256} << 20;

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

}  // namespace

MemoryReader::MemoryReader() : memory_(reinterpret_cast<float*>(allocate_large(kReadBytes))) {
  if (memory_) std::fill_n(memory_, kReadBytes / static_cast<std::int64_t>(sizeof(float)), 0.0F);  // no page faults
}

MemoryReader::~MemoryReader() { std::free(memory_); }

Status MemoryReader::read(Executor& executor, double* gbps) {
  if (!ok()) return error("memory: ", kReadBytes, " bytes could not be had to measure reading");
  const Kernels* kernels = kernels_for(current_isa());
  if (!kernels) return error("isa: scalar reads too slowly to measure memory; force_isa another one");
  Reads work{kernels->f32, memory_, kReadBytes / static_cast<std::int64_t>(sizeof(float)) / executor.threads()};
  const double start = seconds_now();
  executor.run(executor.threads(), read_part, &work);
  *gbps = static_cast<double>(kReadBytes) / (seconds_now() - start) / 1e9;
  return {};
}

Status measure_fma(Executor& executor, DType compute, double* gflops) {
  return measure_fma(executor, compute, /*steps=*/1 << 16, gflops);
}

Status measure_machine(int threads, DType compute, Machine* machine) {
  if (threads < 0) return error("threads: ", threads, "; 0 (one a processor) or more are possible");
  const auto pool = make_thread_pool(threads);
  Machine measured;
  measured.threads = pool->threads();
  ATTN_RETURN_IF_ERROR(measure_fma(*pool, compute, /*steps=*/1 << 21, &measured.fma_gflops));
  MemoryReader memory;
  double passes[9];
  for (double& pass : passes) ATTN_RETURN_IF_ERROR(memory.read(*pool, &pass));
  measured.read_gbps = median(passes);
  *machine = measured;
  return {};
}

}  // namespace attn

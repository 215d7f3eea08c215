#include "attn/machine.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "attn/executor.h"
#include "src/kernels/kernels.h"
#include "src/run/scratch.h"
#include "src/sentence.h"

namespace attn {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The work of one measurement, the same for each thread.
template <class T>
struct Measurement {
  const KernelSet<T>& kernels;
  std::int64_t steps = 0;
  const T* memory = nullptr;
  std::int64_t count = 0;  // numbers a thread reads
  std::vector<double> flops;
};

template <class T>
void multiply_add(void* context, std::int64_t index, int /*worker*/) {
  auto& m = *static_cast<Measurement<T>*>(context);
  T sink[3] = {T(0.5), T(0.25), T(0)};
  m.flops[index] = m.kernels.multiply_adds(m.steps, sink);
}

template <class T>
void read_part(void* context, std::int64_t index, int /*worker*/) {
  auto& m = *static_cast<Measurement<T>*>(context);
  volatile T sink = m.kernels.read_all(m.memory + index * m.count, m.count);
  (void)sink;
}

// The shortest of a few runs: whatever else the machine does can only lengthen one.
template <class Context>
double best_seconds(Executor& executor, int threads, void (*task)(void*, std::int64_t, int), Context* context) {
  constexpr int kRuns = 5;
  double best = 1e30;
  for (int run = 0; run < kRuns; ++run) {
    const double start = seconds_now();
    executor.run(threads, task, context);
    best = std::min(best, seconds_now() - start);
  }
  return best;
}

template <class T>
Status measure(const KernelSet<T>& kernels, Executor& executor, Machine* machine) {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  const int threads = executor.threads();
  const Scratch memory(kBytes);
  if (!memory.data()) return error("memory: ", kBytes, " bytes could not be had to measure reading");
  std::fill_n(memory.data(), kBytes, std::byte{0});  // touched, so that reading meets no page faults

  Measurement<T> m{kernels, /*steps=*/1 << 21, reinterpret_cast<const T*>(memory.data()),
                   kBytes / static_cast<std::int64_t>(sizeof(T)) / threads, std::vector<double>(threads)};
  const double multiply_seconds = best_seconds(executor, threads, multiply_add<T>, &m);
  double flops = 0;
  for (const double f : m.flops) flops += f;
  machine->fma_gflops = flops / multiply_seconds / 1e9;
  machine->read_gbps = static_cast<double>(kBytes) / best_seconds(executor, threads, read_part<T>, &m) / 1e9;
  machine->threads = threads;
  return {};
}

}  // namespace

Status measure_machine(int threads, DType compute, Machine* machine) {
  if (threads < 0) return error("threads: ", threads, "; 0 (one a processor) or more are possible");
  const Kernels* kernels = kernels_for(current_isa());
  if (!kernels) return error("isa: scalar has no peak worth measuring; force_isa another one");
  const auto pool = make_thread_pool(threads);
  return compute == DType::f64 ? measure(kernels->f64, *pool, machine) : measure(kernels->f32, *pool, machine);
}

}  // namespace attn

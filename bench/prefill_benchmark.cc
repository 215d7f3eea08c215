// Prefill against the machine's own FMA peak.
//
// Shared machines drift by the second, so the peak is measured right before each call, and what is reported is the
// median of the calls' shares. `causal_over_full` is the median of times of neighbouring causal and full calls.
//
//   build/release/prefill_benchmark [--benchmark_filter=...]

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "attn/attn.h"

namespace {

using attn::DType;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// One problem: q, k, v normal, one sequence.
struct Prefill {
  std::int64_t heads, length, dim;
  std::vector<float> q, k, v, out;

  Prefill(std::int64_t heads, std::int64_t length, std::int64_t dim) : heads(heads), length(length), dim(dim) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::vector<float>* tensor : {&q, &k, &v}) {
      tensor->resize(heads * length * dim);
      for (float& x : *tensor) x = normal(random);
    }
    out.resize(q.size());
  }

  double flops(bool causal) const {
    const double pairs = causal ? length * (length + 1) / 2.0 : static_cast<double>(length) * length;
    return 4.0 * heads * pairs * dim;
  }

  double seconds(attn::Executor& executor, bool causal) {
    attn::AttentionOptions options;
    options.causal = causal;
    options.executor = &executor;
    const auto view = [&](std::vector<float>& tensor) {
      return attn::OutputView(tensor.data(), DType::f32, {1, heads, length, dim});
    };
    const double start = seconds_now();
    const attn::Status status = attn::forward(view(q), view(k), view(v), view(out), options);
    const double elapsed = seconds_now() - start;
    return status.ok() ? elapsed : 0;
  }
};

void prefill(benchmark::State& state) {
  Prefill problem(state.range(0), state.range(1), state.range(2));
  const bool causal = state.range(3) != 0;
  const auto pool = attn::make_thread_pool(static_cast<int>(state.range(4)));
  problem.seconds(*pool, causal);  // touches the memory
  std::vector<double> shares, gflops;
  for (auto _ : state) {
    double peak = 0;
    if (!attn::measure_fma(*pool, DType::f32, &peak).ok()) return state.SkipWithError("no SIMD target to measure");
    const double seconds = problem.seconds(*pool, causal);
    if (seconds == 0) return state.SkipWithError("forward refused the problem");
    state.SetIterationTime(seconds);
    gflops.push_back(problem.flops(causal) / seconds / 1e9);
    shares.push_back(gflops.back() / peak);
  }
  state.counters["gflops"] = median(gflops);
  state.counters["share_of_peak"] = median(shares);
}

void causal_over_full(benchmark::State& state) {
  Prefill problem(state.range(0), state.range(1), state.range(2));
  const auto pool = attn::make_thread_pool(static_cast<int>(state.range(3)));
  problem.seconds(*pool, false);
  std::vector<double> ratios;
  for (auto _ : state) {
    const double full = problem.seconds(*pool, false), causal = problem.seconds(*pool, true);
    state.SetIterationTime(full + causal);
    ratios.push_back(causal / full);
  }
  state.counters["causal_over_full"] = median(ratios);
}

}  // namespace

BENCHMARK(prefill)
    ->ArgNames({"heads", "length", "dim", "causal", "threads"})
    ->ArgsProduct({{8}, {512, 1024, 4096}, {64, 128}, {0, 1}, {1, 2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(2);

BENCHMARK(causal_over_full)
    ->ArgNames({"heads", "length", "dim", "threads"})
    ->ArgsProduct({{8}, {4096}, {64, 128}, {2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(4);

BENCHMARK_MAIN();

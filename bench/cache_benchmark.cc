// What a KV cache costs: a token appended to sequences of any length, and decode over pages of any size.
//
//   build/release/cache_benchmark [--benchmark_filter=...]

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "attn/attn.h"

namespace {

using attn::CacheType;
using attn::DType;

constexpr std::int64_t kHeads = 8, kDim = 128;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// A sequence that holds `length` tokens.
struct Sequence {
  std::unique_ptr<attn::KvCache> cache;
  attn::SequenceId id = -1;
  std::vector<float> numbers;

  Sequence(CacheType type, std::int64_t page_tokens, std::int64_t length) : numbers(kHeads * 1024 * kDim, 0.25F) {
    if (!attn::KvCache::create({.kv_heads = kHeads, .key_dim = kDim, .type = type, .page_tokens = page_tokens},
                               &cache)
             .ok())
      return;
    if (!cache->add_sequence(&id).ok()) return;
    for (std::int64_t done = 0; done < length; done += 1024)
      if (!append(std::min<std::int64_t>(1024, length - done))) return;
  }

  bool append(std::int64_t tokens) {
    const attn::TensorView rows(numbers.data(), DType::f32, {kHeads, tokens, kDim});
    return cache->append(id, rows, rows).ok();
  }
};

// 256 tokens, one by one, behind `length` others.
void append(benchmark::State& state) {
  Sequence sequence(static_cast<CacheType>(state.range(0)), 256, state.range(1));
  constexpr int kTokens = 256;
  for (auto _ : state) {
    for (int i = 0; i < kTokens; ++i) {
      if (!sequence.append(1)) return state.SkipWithError("append refused");
    }
    state.PauseTiming();
    if (!sequence.cache->truncate(sequence.id, state.range(1)).ok()) return state.SkipWithError("truncate refused");
    state.ResumeTiming();
  }
  state.counters["seconds_a_token"] =
      benchmark::Counter(kTokens, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.SetLabel(attn::name_of(static_cast<CacheType>(state.range(0))));
}

// One query of 32 heads over 32,768 tokens, beside the read bandwidth of the moment.
void decode(benchmark::State& state) {
  constexpr std::int64_t kLength = 32768, kQueryHeads = 32;
  const auto type = static_cast<CacheType>(state.range(0));
  const Sequence sequence(type, state.range(1), kLength);
  const auto pool = attn::make_thread_pool(static_cast<int>(state.range(2)));
  attn::MemoryReader memory;
  std::vector<float> q(kQueryHeads * kDim, 0.5F), out(q.size());
  const attn::TensorView query(q.data(), DType::f32, {1, kQueryHeads, 1, kDim});
  const attn::OutputView result(out.data(), DType::f32, {1, kQueryHeads, 1, kDim});
  attn::AttentionOptions options;
  options.executor = pool.get();
  const double bytes =
      static_cast<double>(sequence.cache->usage().pages_in_use * sequence.cache->usage().page_bytes);
  std::vector<double> shares;
  for (auto _ : state) {
    double gbps = 0;
    if (!memory.read(*pool, &gbps).ok()) return state.SkipWithError("no memory to measure");
    const auto start = std::chrono::steady_clock::now();
    if (!sequence.cache->attend({&sequence.id, 1}, query, result, options).ok())
      return state.SkipWithError("attend refused");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(seconds);
    shares.push_back(bytes / seconds / 1e9 / gbps);
  }
  state.counters["share_of_reading"] = median(shares);
  state.SetLabel(attn::name_of(type));
}

}  // namespace

BENCHMARK(append)
    ->ArgNames({"type", "length"})
    ->ArgsProduct({{0, 1, 2, 3}, {0, 1024, 32768, 262144}})
    ->Args({2, 1'000'000})
    ->Args({3, 1'000'000})
    ->Unit(benchmark::kMicrosecond);

BENCHMARK(decode)
    ->ArgNames({"type", "page", "threads"})
    ->ArgsProduct({{0, 1, 2, 3}, {16, 64, 256, 1024}, {2}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.5);

BENCHMARK_MAIN();

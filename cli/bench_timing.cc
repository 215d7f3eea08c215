#include "cli/bench_timing.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "attn/attention.h"
#include "attn/kv_cache.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void store(double number, DType dtype, std::byte* to) {
  const auto single = static_cast<float>(number);
  const std::uint16_t half = dtype == DType::bf16 ? float_to_bf16(single) : float_to_f16(single);
  switch (dtype) {
    case DType::f64: std::memcpy(to, &number, sizeof number); break;
    case DType::bf16:
    case DType::f16: std::memcpy(to, &half, sizeof half); break;
    default: std::memcpy(to, &single, sizeof single);
  }
}

// Normal numbers in huge pages. A table of them, repeated: making a billion would take longer than all calls.
class Tensor {
 public:
  Tensor(DType dtype, std::vector<std::int64_t> shape, std::uint32_t seed)
      : dtype_(dtype), shape_(std::move(shape)) {
    std::size_t count = 1;
    for (const std::int64_t size : shape_) count *= static_cast<std::size_t>(size);
    const std::size_t bytes = count * size_of(dtype);
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    const std::size_t rounded = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, rounded)));
    if (!memory_) throw std::bad_alloc();
    madvise(memory_.get(), rounded, MADV_HUGEPAGE);
    fill(count, seed);
  }

  OutputView view() { return {memory_.get(), dtype_, {shape_[0], shape_[1], shape_[2], shape_[3]}}; }

 private:
  void fill(std::size_t count, std::uint32_t seed) {
    constexpr std::size_t kTable = 1 << 16;
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    const std::size_t size = size_of(dtype_), table = std::min(count, kTable);
    for (std::size_t i = 0; i < table; ++i) {
      store(normal(random), dtype_, memory_.get() + i * size);
    }
    for (std::size_t i = table; i < count; i += table)
      std::memcpy(memory_.get() + i * size, memory_.get(), std::min(table, count - i) * size);
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::unique_ptr<std::byte, Free> memory_;
};

class Call {
 public:
  Call(const BenchShape& s, Executor& executor)
      : q_(s.dtype, {s.batch, s.heads, s.queries, s.head_dim}, 1),
        out_(s.dtype, {s.batch, s.heads, s.queries, s.head_dim}, 4) {
    options_.executor = &executor;
    options_.causal = s.causal;
    options_.bf16_products = s.bf16_products;
    options_.alignment = Alignment::bottom_right;
    set_option(s);
    if (s.cache) {
      fill_cache(s);
    } else {
      k_.emplace(s.dtype, std::vector{s.batch, s.kv_heads, s.keys, s.head_dim}, 2);
      v_.emplace(s.dtype, std::vector{s.batch, s.kv_heads, s.keys, s.head_dim}, 3);
    }
  }

  /// Seconds of `count` calls in a row.
  double seconds(int count) {
    const double start = seconds_now();
    for (int i = 0; i < count; ++i) require(run());
    return seconds_now() - start;
  }

 private:
  void set_option(const BenchShape& s) {
    if (s.option == "mask") {  // hides nothing, which nobody can know beforehand
      mask_.assign(static_cast<std::size_t>(s.queries * s.keys), 1);
      options_.mask = TensorView(mask_.data(), DType::boolean, {s.queries, s.keys});
    } else if (s.option == "bias") {
      bias_.emplace(s.dtype == DType::f64 ? DType::f64 : DType::f32,
                    std::vector<std::int64_t>{1, 1, s.queries, s.keys}, 5);
      options_.bias = bias_->view();
    } else if (s.option == "softcap") {
      options_.softcap = 30;
    } else if (s.option == "alibi") {
      slopes_ = alibi_slopes(static_cast<int>(s.heads));
      options_.alibi = TensorView(slopes_.data(), DType::f32, {s.heads});
    } else if (s.option == "window") {
      options_.window_left = kBenchWindow;
    }
  }

  // As an engine does: prompt after prompt.
  void fill_cache(const BenchShape& s) {
    require(KvCache::create({.kv_heads = s.kv_heads, .key_dim = s.head_dim, .type = *s.cache}, &cache_));
    Tensor k(s.dtype, {1, s.kv_heads, s.keys, s.head_dim}, 2), v(s.dtype, {1, s.kv_heads, s.keys, s.head_dim}, 3);
    for (std::int64_t b = 0; b < s.batch; ++b) {
      require(cache_->add_sequence(&sequences_.emplace_back()));
      require(cache_->append(sequences_.back(), k.view(), v.view()));
    }
  }

  Status run() {
    return cache_ ? cache_->attend(sequences_, q_.view(), out_.view(), options_)
                  : forward(q_.view(), k_->view(), v_->view(), out_.view(), options_);
  }

  Tensor q_, out_;
  std::optional<Tensor> k_, v_, bias_;
  std::vector<float> slopes_;
  std::vector<std::uint8_t> mask_;
  std::unique_ptr<KvCache> cache_;
  std::vector<SequenceId> sequences_;
  AttentionOptions options_;
};

double peak_now(Executor& executor, DType dtype) {
  double gflops = 0;
  require(measure_fma(executor, dtype == DType::f64 ? DType::f64 : DType::f32, &gflops));
  return gflops;
}

double bandwidth_now(Executor& executor, MemoryReader* memory) {
  double gbps = 0;
  require(memory->read(executor, &gbps));
  return gbps;
}

}  // namespace

BenchResult measure(const BenchShape& shape, Executor& executor, MemoryReader* memory, double seconds) {
  Call call(shape, executor);
  const double once = std::min(call.seconds(1), call.seconds(1));
  const int calls = static_cast<int>(std::clamp(0.002 / once, 1.0, 1e5));  // a clock needs some work to measure
  std::vector<double> times, peaks, bandwidths, shares;
  const double end = seconds_now() + seconds;
  while (times.size() < 5 || seconds_now() < end) {
    const double bandwidth = shape.is_decode() ? bandwidth_now(executor, memory) : 0;
    const double before = peak_now(executor, shape.dtype);
    const double time = call.seconds(calls) / calls;
    const double peak = (before + peak_now(executor, shape.dtype)) / 2;
    times.push_back(time);
    peaks.push_back(peak);
    bandwidths.push_back(bandwidth);
    shares.push_back(shape.is_decode() ? shape.key_value_bytes() / time / 1e9 / bandwidth
                                       : shape.flops() / time / 1e9 / peak);
  }
  BenchResult result;
  const double time = median(times);
  result.milliseconds = time * 1e3;
  result.gflops = shape.flops() / time / 1e9;
  result.gbps = shape.key_value_bytes() / time / 1e9;
  result.peak_gflops = median(peaks);
  result.read_gbps = median(bandwidths);
  result.share = median(shares);
  return result;
}

}  // namespace attn::cli

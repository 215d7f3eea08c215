// The machine's limits: multiply-adds on registers alone, and reading memory front to back.

#if defined(ATTN_KERNELS_PEAK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_PEAK_INL_H_
#undef ATTN_KERNELS_PEAK_INL_H_
#else
#define ATTN_KERNELS_PEAK_INL_H_
#endif

#include "hwy/highway.h"
#include "src/kernels/multiply-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// `steps` times 12 multiply-adds, each into a register of its own: latency × throughput is at most 10 on any
/// machine.
template <class T>
double MultiplyAdds(std::int64_t steps, T* sink) {
  const hn::ScalableTag<T> d;
  constexpr int kChains = 12;
  const auto factor = hn::Set(d, sink[0]), addend = hn::Set(d, sink[1]);
  hn::Vec<decltype(d)> chains[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) chains[i] = hn::Set(d, static_cast<T>(i));
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) chains[i] = hn::MulAdd(chains[i], factor, addend);
  }
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) chains[0] = hn::Add(chains[0], chains[i]);
  sink[2] = hn::GetLane(chains[0]);
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

/// Reads `count` numbers (a multiple of 8 vectors); the sum keeps the reads from being left out.
template <class T>
T ReadAll(const T* HWY_RESTRICT from, std::int64_t count) {
  const hn::ScalableTag<T> d;
  constexpr int kStreams = 8;
  const std::int64_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kStreams];
#pragma GCC unroll 16
  for (int s = 0; s < kStreams; ++s) sums[s] = hn::Zero(d);
  for (std::int64_t i = 0; i + kStreams * lanes <= count; i += kStreams * lanes) {
#pragma GCC unroll 16
    for (int s = 0; s < kStreams; ++s) sums[s] = hn::Add(sums[s], hn::LoadU(d, from + i + s * lanes));
  }
#pragma GCC unroll 16
  for (int s = 1; s < kStreams; ++s) sums[0] = hn::Add(sums[0], sums[s]);
  return hn::GetLane(sums[0]);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

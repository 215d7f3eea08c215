// One row of scores in L1: softcap, bias, ALiBi and masks, then the step of the online softmax.

#if defined(ATTN_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_SOFTMAX_INL_H_
#undef ATTN_KERNELS_SOFTMAX_INL_H_
#else
#define ATTN_KERNELS_SOFTMAX_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "src/kernels/exp2-inl.h"
#include "src/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Columns of a block, in whole units: [begin, end), multiples of kUnitKeys.
struct UnitRange {
  std::int32_t begin, end;
};

template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> MinusInfinity(D d) {
  return hn::Set(d, -std::numeric_limits<T>::infinity());
}

template <class T>
HWY_INLINE void CapScores(T* HWY_RESTRICT scores, UnitRange range, T cap_factor) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, cap_factor);
  for (std::int32_t c = range.begin; c < range.end; c += hn::Lanes(d)) {
    hn::StoreU(hn::Mul(Tanh(d, hn::LoadU(d, scores + c)), factor), d, scores + c);
  }
}

template <class T>
HWY_INLINE void AddBias(T* HWY_RESTRICT scores, UnitRange range, const T* HWY_RESTRICT bias) {
  const hn::ScalableTag<T> d;
  const auto log2e = hn::Set(d, static_cast<T>(kLog2E));
  for (std::int32_t c = range.begin; c < range.end; c += hn::Lanes(d)) {
    const auto added = hn::LoadU(d, bias + c);
    const auto sum = hn::MulAdd(added, log2e, hn::LoadU(d, scores + c));
    hn::StoreU(hn::IfThenElse(hn::Eq(added, MinusInfinity(d)), added, sum), d, scores + c);
  }
}

template <class T>
HWY_INLINE void AddAlibi(T* HWY_RESTRICT scores, UnitRange range, T slope, T distance) {
  const hn::ScalableTag<T> d;
  const auto minus_slope = hn::Set(d, -slope);
  const auto from_block = hn::Set(d, distance);
  for (std::int32_t c = range.begin; c < range.end; c += hn::Lanes(d)) {
    const auto away = hn::Abs(hn::Sub(from_block, hn::Iota(d, static_cast<T>(c))));
    hn::StoreU(hn::MulAdd(minus_slope, away, hn::LoadU(d, scores + c)), d, scores + c);
  }
}

/// Scores of keys outside the row's intervals become −∞, by selection.
template <class T>
HWY_INLINE void HideColumns(T* HWY_RESTRICT scores, UnitRange range, const RowColumns& columns) {
  const hn::ScalableTag<T> d;
  const auto first = hn::Set(d, static_cast<T>(columns.first)),
             sink_end = hn::Set(d, static_cast<T>(columns.sink_end));
  const auto begin = hn::Set(d, static_cast<T>(columns.begin)), end = hn::Set(d, static_cast<T>(columns.end));
  for (std::int32_t c = range.begin; c < range.end; c += hn::Lanes(d)) {
    const auto column = hn::Iota(d, static_cast<T>(c));
    const auto in_sink = hn::And(hn::Ge(column, first), hn::Lt(column, sink_end));
    const auto in_window = hn::And(hn::Ge(column, begin), hn::Lt(column, end));
    const auto seen = hn::Or(in_sink, in_window);
    hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + c), MinusInfinity(d)), d, scores + c);
  }
}

/// The larger of `max` and the row's largest score. Which of several NaNs or zeros comes out does not matter.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T MaxOfRow(D d, const T* HWY_RESTRICT scores, UnitRange range, T max) {
  constexpr std::int32_t kLanesHere = static_cast<std::int32_t>(hn::MaxLanes(D()));
  constexpr std::int32_t kChains = 4;  // a chain of 16 maxima would wait 64 cycles for its latencies
  hn::Vec<D> largest[kChains];
#pragma GCC unroll 4
  for (int i = 0; i < kChains; ++i) largest[i] = hn::Set(d, max);
  std::int32_t c = range.begin;
  for (; c + kChains * kLanesHere <= range.end; c += kChains * kLanesHere) {
#pragma GCC unroll 4
    for (int i = 0; i < kChains; ++i) largest[i] = hn::Max(hn::LoadU(d, scores + c + i * kLanesHere), largest[i]);
  }
  for (; c < range.end; c += kLanesHere) largest[0] = hn::Max(hn::LoadU(d, scores + c), largest[0]);
  const auto pair = hn::Max(hn::Max(largest[0], largest[1]), hn::Max(largest[2], largest[3]));
  return hn::GetLane(hn::MaxOfLanes(d, pair));
}

/// Lane i + lane i + half, down to one. The last steps go by shuffles: halves of less than 128 bits are slow on x86.
HWY_INLINE float FoldVector(hn::FixedTag<float, 4> /*d*/, hn::Vec<hn::FixedTag<float, 4>> v) {
  v = hn::Add(v, hn::Shuffle1032(v));
  return hn::GetLane(hn::Add(v, hn::Shuffle2301(v)));
}

HWY_INLINE double FoldVector(hn::FixedTag<double, 2> /*d*/, hn::Vec<hn::FixedTag<double, 2>> v) {
  return hn::GetLane(hn::Add(v, hn::Shuffle01(v)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::TFromD<D> FoldVector(D /*d*/, V v) {
  const hn::Half<D> half;
  return FoldVector(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
}

/// scores ← weights 2^(score − subtract); returns their sum over the kSumLanes virtual lanes.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE T WeighRow(D d, T* HWY_RESTRICT scores, UnitRange range, T subtract) {
  constexpr std::int32_t kLanesHere = static_cast<std::int32_t>(hn::MaxLanes(D()));
  constexpr std::int32_t kVectors = static_cast<std::int32_t>(kSumLanes) / kLanesHere;
  const auto shift = hn::Set(d, subtract);
  hn::Vec<D> sums[kVectors];
#pragma GCC unroll 32
  for (std::int32_t v = 0; v < kVectors; ++v) sums[v] = hn::Zero(d);
  if (range.begin == 0 && range.end == kBlockKeys) {
    // One turn a block row: all 16 vectors of the row unrolled spill constants (11 to 13 cycles a vector, not 10).
#pragma GCC unroll 1
    for (std::int32_t start = 0; start < kBlockKeys; start += kSumLanes) {
#pragma GCC unroll 32
      for (std::int32_t v = 0; v < kVectors; ++v) {
        T* here = scores + start + v * kLanesHere;
        const auto weight = Exp2Nonpositive(d, hn::Sub(hn::LoadU(d, here), shift));
        hn::StoreU(weight, d, here);
        sums[v] = hn::Add(sums[v], weight);
      }
    }
  } else {
    T lanes[kSumLanes] = {};
    for (std::int32_t c = range.begin; c < range.end; c += kLanesHere) {
      const auto weight = Exp2Nonpositive(d, hn::Sub(hn::LoadU(d, scores + c), shift));
      hn::StoreU(weight, d, scores + c);
      T* lane = lanes + c % kSumLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, lane), weight), d, lane);
    }
#pragma GCC unroll 32
    for (std::int32_t v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, lanes + v * kLanesHere);
  }
#pragma GCC unroll 8
  for (std::int32_t width = kVectors / 2; width >= 1; width /= 2) {
#pragma GCC unroll 32
    for (std::int32_t v = 0; v < width; ++v) sums[v] = hn::Add(sums[v], sums[v + width]);
  }
  return FoldVector(d, sums[0]);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

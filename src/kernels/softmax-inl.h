// One row of scores in L1: softcap, bias, ALiBi and masks, then the step of the online softmax.

#if defined(ATTN_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_SOFTMAX_INL_H_
#undef ATTN_KERNELS_SOFTMAX_INL_H_
#else
#define ATTN_KERNELS_SOFTMAX_INL_H_
#endif

#include <algorithm>
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
HWY_INLINE void ScaleScores(T* HWY_RESTRICT scores, UnitRange range, T score_factor) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, score_factor);
  for (std::int32_t c = range.begin; c < range.end; c += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::LoadU(d, scores + c), factor), d, scores + c);
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

/// A boolean mask as numbers to add, or upon those that are there.
template <class T>
void HideMasked(const std::uint8_t* HWY_RESTRICT allowed, std::int64_t count, T* HWY_RESTRICT row) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const std::int64_t lanes = hn::Lanes(d);
  std::int64_t i = 0;
  if constexpr (sizeof(T) == sizeof(float)) {
    for (; i + lanes <= count; i += lanes) {
      const auto hidden = hn::Eq(hn::PromoteTo(bits, hn::LoadU(bytes, allowed + i)), hn::Zero(bits));
      hn::StoreU(hn::IfThenElse(hn::RebindMask(d, hidden), MinusInfinity(d), hn::LoadU(d, row + i)), d, row + i);
    }
  }
  for (; i < count; ++i) row[i] = allowed[i] != 0 ? row[i] : -std::numeric_limits<T>::infinity();
}

template <class T>
HWY_INLINE void HidePart(T* HWY_RESTRICT scores, std::int32_t from, std::int32_t to, const RowColumns& columns) {
  const hn::ScalableTag<T> d;
  const auto first = hn::Set(d, static_cast<T>(columns.first)),
             sink_end = hn::Set(d, static_cast<T>(columns.sink_end));
  const auto begin = hn::Set(d, static_cast<T>(columns.begin)), end = hn::Set(d, static_cast<T>(columns.end));
  for (std::int32_t c = from; c < to; c += hn::Lanes(d)) {
    const auto column = hn::Iota(d, static_cast<T>(c));
    const auto in_sink = hn::And(hn::Ge(column, first), hn::Lt(column, sink_end));
    const auto in_window = hn::And(hn::Ge(column, begin), hn::Lt(column, end));
    const auto seen = hn::Or(in_sink, in_window);
    hn::StoreU(hn::IfThenElse(seen, hn::LoadU(d, scores + c), MinusInfinity(d)), d, scores + c);
  }
}

/// Scores of keys outside the row's intervals become −∞, by selection. Units inside the window stay as they are.
template <class T>
HWY_INLINE void HideColumns(T* HWY_RESTRICT scores, UnitRange range, const RowColumns& columns) {
  constexpr std::int32_t kUnit = static_cast<std::int32_t>(kUnitKeys);
  const std::int32_t inside = std::clamp((columns.begin + kUnit - 1) / kUnit * kUnit, range.begin, range.end);
  const std::int32_t behind = std::clamp(columns.end / kUnit * kUnit, inside, range.end);
  HidePart(scores, range.begin, inside, columns);
  HidePart(scores, behind, range.end, columns);
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

// Vectors that go through exp2 together: as many as the registers hold with their intermediate results.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kWeighedVectors = 8;
#else
inline constexpr int kWeighedVectors = 4;
#endif

/// weights ← 2^(scores − subtract) of `kVectors` vectors, also in place of the scores.
template <int kVectors, class D, class T = hn::TFromD<D>>
HWY_INLINE void WeighVectors(D d, T* HWY_RESTRICT scores, hn::Vec<D> subtract, hn::Vec<D> (&weights)[kVectors]) {
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) weights[v] = hn::Sub(hn::LoadU(d, scores + v * hn::Lanes(d)), subtract);
  Exp2Nonpositive(d, weights);
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) hn::StoreU(weights[v], d, scores + v * hn::Lanes(d));
}

/// scores ← weights from column `begin` to `end`, which lie in one block row; each adds to its lane's sum.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void WeighPart(D d, T* HWY_RESTRICT scores, std::int32_t begin, std::int32_t end, hn::Vec<D> subtract,
                          T* HWY_RESTRICT lanes) {
  for (std::int32_t c = begin; c < end; c += hn::Lanes(d)) {
    hn::Vec<D> weight[1];
    WeighVectors(d, scores + c, subtract, weight);
    T* lane = lanes + c % kSumLanes;
    hn::StoreU(hn::Add(hn::LoadU(d, lane), weight[0]), d, lane);
  }
}

/// The same for a whole number of block rows, sums in registers.
template <int kBlockRows, class D, class T = hn::TFromD<D>, int kVectors = kSumLanes / hn::MaxLanes(D())>
HWY_INLINE void WeighBlockRows(D d, T* HWY_RESTRICT scores, hn::Vec<D> subtract, hn::Vec<D> (&sums)[kVectors]) {
  constexpr int kAll = kBlockRows * kVectors, kTogether = std::min(kAll, kWeighedVectors);
#pragma GCC unroll 8
  for (int first = 0; first < kAll; first += kTogether) {
    hn::Vec<D> weights[kTogether];
    WeighVectors(d, scores + first * hn::Lanes(d), subtract, weights);
#pragma GCC unroll 16
    for (int v = 0; v < kTogether; ++v) {
      hn::Vec<D>& sum = sums[(first + v) % kVectors];
      sum = hn::Add(sum, weights[v]);
    }
  }
}

/// scores ← weights 2^(score − max), nothing subtracted while max is −∞; returns their sum over the kSumLanes virtual lanes. Not inlined: among the
/// registers of its callers the loop spills.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE T WeighRow(D d, T* HWY_RESTRICT scores, UnitRange range, T max) {
  constexpr std::int32_t kLanesHere = static_cast<std::int32_t>(hn::MaxLanes(D()));
  constexpr std::int32_t kBlockRow = static_cast<std::int32_t>(kSumLanes);
  constexpr int kVectors = kBlockRow / kLanesHere;
  constexpr int kRowsTogether = std::max(1, kWeighedVectors / kVectors);
  const auto shift = hn::Set(d, max == -std::numeric_limits<T>::infinity() ? T(0) : max);
  T lanes[kSumLanes] = {};
  std::int32_t c = std::min(range.end, (range.begin + kBlockRow - 1) / kBlockRow * kBlockRow);
  WeighPart(d, scores, range.begin, c, shift, lanes);
  hn::Vec<D> sums[kVectors];
#pragma GCC unroll 32
  for (std::int32_t v = 0; v < kVectors; ++v) sums[v] = hn::LoadU(d, lanes + v * kLanesHere);
#pragma GCC unroll 1
  for (; c + kRowsTogether * kBlockRow <= range.end; c += kRowsTogether * kBlockRow)
    WeighBlockRows<kRowsTogether>(d, scores + c, shift, sums);
#pragma GCC unroll 1
  for (; c + kBlockRow <= range.end; c += kBlockRow) WeighBlockRows<1>(d, scores + c, shift, sums);
  if (c < range.end) {
#pragma GCC unroll 32
    for (std::int32_t v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, lanes + v * kLanesHere);
    WeighPart(d, scores, c, range.end, shift, lanes);
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

// The scores of a strip: q·k. A panel of keys stays in L1 while every group of rows passes over it.

#if defined(ATTN_KERNELS_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_SCORES_INL_H_
#undef ATTN_KERNELS_SCORES_INL_H_
#else
#define ATTN_KERNELS_SCORES_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/multiply-inl.h"
#include "src/kernels/pack-inl.h"
#include "src/kernels/strip-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kRows, int kVectors, class T>
HWY_INLINE void StoreScores(const Operands<T>& operands, T* HWY_RESTRICT scores) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  ClearSums(d, sums);
  Multiply(d, operands, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, scores + r * kBlockKeys + v * kLanes<T>);
  }
}

// Units side by side: as many as a panel has, at least one.
inline constexpr std::int32_t kKeyPanel = std::max<std::int32_t>(kPanelColumns<float>, kUnitKeys);
static_assert(kKeyPanel <= kKeyPanelKeys);

/// Keys of a strip: the panel that starts at column `first`.
template <class T>
struct KeyPanel {
  const T* units;
  std::int32_t first;
};

/// Where keys are not packed yet, packs those of the panel.
template <class T>
HWY_INLINE KeyPanel<T> KeyPanelAt(const BlockTask<T>& strip, std::int32_t first) {
  if (strip.keys) return {strip.keys + first * strip.key_dim, first};
  const std::int32_t begin = std::max(first, strip.first_key), end = std::min(first + kKeyPanel, strip.end_key);
  if (begin < end) {
    SourceRows rows = strip.key_rows;
    rows.data += (begin - strip.first_key) * rows.row_stride * static_cast<std::int64_t>(size_of(rows.dtype));
    PackKeys(rows, end - begin, begin - first, strip.key_dim, strip.key_panel);
  }
  return {strip.key_panel, first};
}

template <int kRows, class T>
HWY_NOINLINE void ScorePanel(const KeyPanel<T>& panel, std::int64_t key_dim, const T* queries, std::int32_t begin,
                             std::int32_t end, T* scores) {
  const std::int64_t unit = key_dim * kUnitKeys;
  while (begin < end) {
    const std::int32_t column = begin - panel.first;
    const T* keys = panel.units + column / kUnitKeys * unit + column % kUnitKeys;
    const Operands<T> operands{queries, 1, kRows, keys, kUnitKeys, unit, key_dim};
    const int vectors = std::min((end - begin) / kLanes<T>, kPanelVectors);
    switch (vectors) {
      case 1: StoreScores<kRows, 1>(operands, scores + begin); break;
      case 2: StoreScores<kRows, 2>(operands, scores + begin); break;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
      case 3: StoreScores<kRows, 3>(operands, scores + begin); break;
      case 4: StoreScores<kRows, 4>(operands, scores + begin); break;
#endif
      default: return;
    }
    begin += vectors * kLanes<T>;
  }
}

template <class T>
HWY_INLINE void ScoreGroup(const BlockTask<T>& strip, const KeyPanel<T>& panel, const RowGroup& group,
                           std::int32_t begin, std::int32_t end) {
  const T* queries = strip.queries + group.first_row * strip.query_stride;
  T* scores = strip.scores + group.first_row * kBlockKeys;
  switch (group.rows) {
    case 1: return ScorePanel<1>(panel, strip.key_dim, queries, begin, end, scores);
    case 2: return ScorePanel<2>(panel, strip.key_dim, queries, begin, end, scores);
    case 3: return ScorePanel<3>(panel, strip.key_dim, queries, begin, end, scores);
    case 4: return ScorePanel<4>(panel, strip.key_dim, queries, begin, end, scores);
    case 5: return ScorePanel<5>(panel, strip.key_dim, queries, begin, end, scores);
    default: return ScorePanel<6>(panel, strip.key_dim, queries, begin, end, scores);
  }
}

template <class T>
HWY_INLINE void ScoreStrip(const BlockTask<T>& strip, const RowGroups& groups) {
  for (std::int32_t first = 0; first < kBlockKeys; first += kKeyPanel) {
    KeyPanel<T> panel{};
    for (int g = 0; g < groups.count; ++g) {
      const UnitRange units = groups.of[g].units();
      const std::int32_t begin = std::max(first, units.begin);
      const std::int32_t end = std::min(first + kKeyPanel, units.end);
      if (begin >= end) continue;
      if (!panel.units) panel = KeyPanelAt(strip, first);
      ScoreGroup(strip, panel, groups.of[g], begin, end);
    }
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

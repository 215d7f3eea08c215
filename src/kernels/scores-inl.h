// The scores of a strip: q·k. A panel of keys stays in L1 while every group of rows passes over it.

#if defined(ATTN_KERNELS_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_SCORES_INL_H_
#undef ATTN_KERNELS_SCORES_INL_H_
#else
#define ATTN_KERNELS_SCORES_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/pack-inl.h"
#include "src/kernels/sources-inl.h"
#include "src/kernels/strip-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kRows, int kVectors, class Keys, class T>
HWY_INLINE void StoreScores(const Keys& keys, std::int64_t key_dim, const T* queries, std::int32_t column,
                            T* HWY_RESTRICT scores) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  ClearSums(d, sums);
  keys.template Multiply<kRows, kVectors>(d, queries, key_dim, column, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, scores + r * kBlockKeys + column + v * kLanes<T>);
  }
}

// Units side by side: as many as a panel has, at least one.
inline constexpr std::int32_t kKeyPanel = std::max<std::int32_t>(kPanelColumns<float>, kUnitKeys);
static_assert(kKeyPanel <= kKeyPanelKeys);

template <int kRows, class Keys, class T>
HWY_NOINLINE void ScorePanel(const Keys& keys, std::int64_t key_dim, const T* queries, std::int32_t begin,
                             std::int32_t end, T* scores) {
  while (begin < end) {
    const int vectors = std::min((end - begin) / kLanes<T>, Keys::kVectors);
    switch (vectors) {
      case 1: StoreScores<kRows, 1>(keys, key_dim, queries, begin, scores); break;
      case 2: StoreScores<kRows, 2>(keys, key_dim, queries, begin, scores); break;
      case 3:
        if constexpr (Keys::kVectors >= 3) StoreScores<kRows, 3>(keys, key_dim, queries, begin, scores);
        break;
      case 4:
        if constexpr (Keys::kVectors >= 4) StoreScores<kRows, 4>(keys, key_dim, queries, begin, scores);
        break;
      default: return;
    }
    begin += vectors * kLanes<T>;
  }
}

/// Columns of a strip [begin, end), which lie in one piece.
template <class Keys, class T>
HWY_INLINE void ScoreGroup(const BlockTask<T>& strip, const Keys& keys, const RowGroup& group, std::int32_t begin,
                           std::int32_t end) {
  const T* queries = strip.queries + group.first_row * strip.query_stride;
  T* scores = strip.scores + group.first_row * kBlockKeys;
  switch (group.rows) {
    case 1: return ScorePanel<1>(keys, strip.key_dim, queries, begin, end, scores);
    case 2: return ScorePanel<2>(keys, strip.key_dim, queries, begin, end, scores);
    case 3: return ScorePanel<3>(keys, strip.key_dim, queries, begin, end, scores);
    case 4: return ScorePanel<4>(keys, strip.key_dim, queries, begin, end, scores);
    case 5: return ScorePanel<5>(keys, strip.key_dim, queries, begin, end, scores);
    default: return ScorePanel<6>(keys, strip.key_dim, queries, begin, end, scores);
  }
}

/// The keys of the panel that starts at column `first`, where they lie or packed just now.
template <class T>
HWY_INLINE PlainKeys<T> PlainPanel(const BlockTask<T>& strip, std::int32_t first, std::int32_t columns) {
  const KeyBlock<T>& block = *strip.block;
  if (const auto* piece = static_cast<const T*>(block.keys[first / block.piece_keys]))
    return {piece + first % block.piece_keys * strip.key_dim, first};
  const std::int32_t begin = std::max(first, block.first_key), end = std::min(first + columns, block.end_key);
  if (begin < end) {
    SourceRows rows = block.key_rows;
    rows.data += (begin - block.first_key) * rows.row_stride * static_cast<std::int64_t>(size_of(rows.dtype));
    PackKeys(rows, end - begin, begin - first, strip.key_dim, block.key_panel);
  }
  return {block.key_panel, first};
}

/// What a group sees of the panel [first, first + columns), in whole units.
HWY_INLINE ColumnRange SeenOfPanel(const RowGroup& group, std::int32_t first, std::int32_t columns) {
  const UnitRange units = group.units();
  return {std::max(first, units.begin), std::min(first + columns, units.end)};
}

template <class T>
HWY_INLINE void ScorePlainStrip(const BlockTask<T>& strip, const RowGroups& groups) {
  const std::int32_t columns = std::min(kKeyPanel, strip.block->piece_keys);
  for (std::int32_t first = 0; first < kBlockKeys; first += columns) {
    PlainKeys<T> keys{};
    for (int g = 0; g < groups.count; ++g) {
      const ColumnRange seen = SeenOfPanel(groups.of[g], first, columns);
      if (seen.begin >= seen.end) continue;
      if (!keys.units) keys = PlainPanel(strip, first, columns);
      ScoreGroup(strip, keys, groups.of[g], seen.begin, seen.end);
    }
  }
}

template <CacheType kType>
HWY_NOINLINE void ScoreStoredStrip(const BlockTask<float>& strip, const RowGroups& groups) {
  constexpr auto kUnit = static_cast<std::int32_t>(kUnitKeys);
  const KeyBlock<float>& block = *strip.block;
  const StoredKeys<kType> keys{block};
  for (std::int32_t first = 0; first < block.end_key; first += kUnit) {
    AskForNext(block, block.keys, first + kUnit, block.values[0]);
    for (int g = 0; g < groups.count; ++g) {
      const ColumnRange seen = SeenOfPanel(groups.of[g], first, kUnit);
      if (seen.begin < seen.end) ScoreGroup(strip, keys, groups.of[g], seen.begin, seen.end);
    }
  }
}

template <class T>
HWY_INLINE void ScoreStrip(const BlockTask<T>& strip, const RowGroups& groups) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (const UnitLayout* stored = strip.block->stored) {
      switch (stored->type) {
        case CacheType::bf16: return ScoreStoredStrip<CacheType::bf16>(strip, groups);
        case CacheType::f16: return ScoreStoredStrip<CacheType::f16>(strip, groups);
        case CacheType::q8: return ScoreStoredStrip<CacheType::q8>(strip, groups);
        case CacheType::f32: return ScoreStoredStrip<CacheType::f32>(strip, groups);
      }
    }
  }
  ScorePlainStrip(strip, groups);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// A strip: some rows of a tile, in groups that go through the registers together.

#if defined(ATTN_KERNELS_STRIP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_STRIP_INL_H_
#undef ATTN_KERNELS_STRIP_INL_H_
#else
#define ATTN_KERNELS_STRIP_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/kernels.h"
#include "src/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Up to kRowGroup rows of a strip, and the columns that any of them sees.
struct RowGroup {
  int first_row, rows;
  std::int32_t lowest, highest;

  bool empty() const { return highest <= lowest; }
  UnitRange units() const {
    constexpr std::int32_t kUnit = static_cast<std::int32_t>(kUnitKeys);
    return {lowest / kUnit * kUnit, (highest + kUnit - 1) / kUnit * kUnit};
  }
};

template <class T>
HWY_INLINE RowGroup GroupAt(const BlockTask<T>& strip, int first_row) {
  RowGroup group{first_row, std::min(kRowGroup, strip.rows - first_row), static_cast<std::int32_t>(kBlockKeys), 0};
  for (int r = first_row; r < first_row + group.rows; ++r) {
    if (strip.columns[r].empty()) continue;
    group.lowest = std::min(group.lowest, strip.columns[r].lowest());
    group.highest = std::max(group.highest, strip.columns[r].highest());
  }
  return group;
}

/// The groups of a strip that see keys.
struct RowGroups {
  int count = 0;
  RowGroup of[kStripRows / kRowGroup];
};

template <class T>
HWY_INLINE void FindGroups(const BlockTask<T>& strip, RowGroups* groups) {
  for (int row = 0; row < strip.rows; row += kRowGroup) {
    const RowGroup group = GroupAt(strip, row);
    if (!group.empty()) groups->of[groups->count++] = group;
  }
}

/// The strip of a tile that starts at row `first`, of at most `rows` rows.
template <class T>
HWY_INLINE BlockTask<T> StripAt(const BlockTask<T>& tile, int first, int rows) {
  BlockTask<T> strip = tile;
  strip.rows = std::min(rows, tile.rows - first);
  strip.queries += first * tile.query_stride;
  strip.columns += first;
  if (tile.bias) strip.bias += first * kBlockKeys;
  if (tile.slopes) {
    strip.slopes += first;
    strip.distances += first;
  }
  strip.max += first;
  strip.sum += first;
  strip.out += first * tile.value_dim;
  return strip;
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

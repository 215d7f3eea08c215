// A strip: some rows of a tile, in groups that go through the registers together.

#if defined(ATTN_KERNELS_STRIP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_STRIP_INL_H_
#undef ATTN_KERNELS_STRIP_INL_H_
#else
#define ATTN_KERNELS_STRIP_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "src/kernels/kernels.h"
#include "src/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Columns of a block: [begin, end).
struct ColumnRange {
  std::int32_t begin, end;
};

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

/// The columns that any of the rows [first, end) sees, from the lowest to behind the highest; {kBlockKeys, 0} where none.
template <class T>
HWY_INLINE ColumnRange SeenColumns(const BlockTask<T>& strip, int first, int end) {
  ColumnRange seen{static_cast<std::int32_t>(kBlockKeys), 0};
  for (int row = first; row < end; ++row) {
    if (strip.columns[row].empty()) continue;
    seen.begin = std::min(seen.begin, strip.columns[row].lowest());
    seen.end = std::max(seen.end, strip.columns[row].highest());
  }
  return seen;
}

/// Whether an interval or a mask hides the column from the row.
template <class T>
HWY_INLINE bool IsHidden(const BlockTask<T>& strip, int row, std::int32_t column) {
  return !strip.columns[row].contains(column) ||
         (strip.bias && strip.bias[row * kBlockKeys + column] == -std::numeric_limits<T>::infinity());
}

template <class T>
HWY_INLINE RowGroup GroupAt(const BlockTask<T>& strip, int first_row) {
  const int rows = std::min(kRowGroup, strip.rows - first_row);
  const ColumnRange seen = SeenColumns(strip, first_row, first_row + rows);
  return {first_row, rows, seen.begin, seen.end};
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

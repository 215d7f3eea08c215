// Small matrices on their side: keys to units, query rows to groups.

#if defined(ATTN_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_TRANSPOSE_INL_H_
#undef ATTN_KERNELS_TRANSPOSE_INL_H_
#else
#define ATTN_KERNELS_TRANSPOSE_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Numbers in 128 bits: the side of the square that shuffles transpose.
template <class T>
inline constexpr std::int64_t kSquare = 16 / sizeof(T);

/// The 128-bit blocks of a vector to places `stride` apart.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void StoreBlocks(D d, hn::Vec<D> v, T* HWY_RESTRICT to, std::int64_t stride) {
  if constexpr (hn::MaxLanes(D()) == kSquare<T>) {
    hn::StoreU(v, d, to);
  } else {
    const hn::Half<D> half;
    StoreBlocks(half, hn::LowerHalf(half, v), to, stride);
    StoreBlocks(half, hn::UpperHalf(half, v), to + hn::Lanes(half) / kSquare<T> * stride, stride);
  }
}

/// kSquare rows of one vector each: to[column][row] = from[row][column], strides in elements. Whole vectors, stored by
/// their blocks, need half the shuffles of one square after another.
template <class D>
HWY_INLINE void TransposeRows(D d, const float* HWY_RESTRICT from, std::int64_t from_row, float* HWY_RESTRICT to,
                              std::int64_t to_row) {
  const hn::Repartition<double, D> pairs;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row);
  const auto c = hn::LoadU(d, from + 2 * from_row), e = hn::LoadU(d, from + 3 * from_row);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  StoreBlocks(d, hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), to, 4 * to_row);
  StoreBlocks(d, hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), to + to_row, 4 * to_row);
  StoreBlocks(d, hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), to + 2 * to_row, 4 * to_row);
  StoreBlocks(d, hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), to + 3 * to_row, 4 * to_row);
}

template <class D>
HWY_INLINE void TransposeRows(D d, const double* HWY_RESTRICT from, std::int64_t from_row, double* HWY_RESTRICT to,
                              std::int64_t to_row) {
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row);
  StoreBlocks(d, hn::InterleaveLower(d, a, b), to, 2 * to_row);
  StoreBlocks(d, hn::InterleaveUpper(d, a, b), to + to_row, 2 * to_row);
}

/// The rows behind these, soon to be read: kSquare rows of `columns` numbers.
template <class T>
HWY_INLINE void PrefetchRows(const T* rows, std::int64_t row_stride, std::int64_t columns) {
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t row = 0; row < kSquare<T>; ++row) {
    for (std::int64_t c = 0; c < columns; c += kLine) hwy::Prefetch(rows + row * row_stride + c);
  }
}

/// to[column][kRows] from kRows rows of `columns` elements. Rows that fill no whole number of squares share some: six go
/// as two squares of four. Memory is read front to back, and asked for a square ahead: keys that lie in DRAM arrive at
/// the read bandwidth (15.9 GB/s, as reading alone; 11 without asking ahead, 9 column by column).
template <int kRows, class T>
HWY_INLINE void TransposeColumns(const T* HWY_RESTRICT from, std::int64_t from_row, std::int64_t columns,
                                 T* HWY_RESTRICT to) {
  constexpr std::int64_t kLast = kRows - kSquare<T>;  // the last square's first row
  const hn::ScalableTag<T> d;
  const hn::FixedTag<T, kSquare<T>> square;
  const std::int64_t lanes = hn::Lanes(d);
  for (std::int64_t row = 0; row < kRows; row += kSquare<T>) {
    const std::int64_t first = row < kLast ? row : kLast;
    const T* rows = from + first * from_row;
    if constexpr (kRows == kUnitKeys) PrefetchRows(rows + kSquare<T> * from_row, from_row, columns);
    std::int64_t column = 0;
    for (; column + lanes <= columns; column += lanes)
      TransposeRows(d, rows + column, from_row, to + column * kRows + first, kRows);
    for (; column + kSquare<T> <= columns; column += kSquare<T>)
      TransposeRows(square, rows + column, from_row, to + column * kRows + first, kRows);
  }
  for (std::int64_t column = columns / kSquare<T> * kSquare<T>; column < columns; ++column) {
    for (std::int64_t row = 0; row < kRows; ++row) to[column * kRows + row] = from[row * from_row + column];
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// Rows of any dtype and stride to packed key units and value rows.

#if defined(ATTN_KERNELS_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_PACK_INL_H_
#undef ATTN_KERNELS_PACK_INL_H_
#else
#define ATTN_KERNELS_PACK_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/elements.h"
#include "src/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V WidenBf16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> halves) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, halves)));
}

/// Our own conversion, exact and alike on all targets (Highway 1.0.3's is neither); see widen_f16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WidenF16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> halves) {
  const hn::RebindToUnsigned<D> bits;
  const hn::RebindToSigned<D> integers;
  const auto wide = hn::PromoteTo(bits, halves);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(bits, 0x8000u)));
  const auto half = hn::And(wide, hn::Set(bits, 0x7FFFu));
  const auto shifted = hn::ShiftLeft<13>(half);
  const auto normal = hn::Add(shifted, hn::Set(bits, (127u - 15u) << 23));
  const auto special = hn::Add(shifted, hn::Set(bits, (255u - 31u) << 23));
  const auto counted = hn::ConvertTo(d, hn::BitCast(integers, half));
  const auto denormal = hn::BitCast(bits, hn::Mul(counted, hn::Set(d, 0x1p-24f)));
  auto magnitude = hn::IfThenElse(hn::Lt(half, hn::Set(bits, 0x0400u)), denormal, normal);
  magnitude = hn::IfThenElse(hn::Gt(half, hn::Set(bits, 0x7BFFu)), special, magnitude);
  return hn::BitCast(d, hn::Or(sign, magnitude));
}

/// `count` contiguous 16-bit numbers to f32.
HWY_INLINE void WidenContiguous(const std::byte* from, DType dtype, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const std::int64_t lanes = hn::Lanes(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    std::uint16_t bits[HWY_LANES(float)];
    std::memcpy(bits, from + 2 * i, sizeof(std::uint16_t) * lanes);
    const auto halves = hn::LoadU(half, bits);
    hn::StoreU(dtype == DType::bf16 ? WidenBf16(d, halves) : WidenF16(d, halves), d, to + i);
  }
  for (; i < count; ++i) to[i] = load_element<float>(from + 2 * i, dtype);
}

/// `count` elements from row `row`, column `column` on.
template <class T>
HWY_INLINE void WidenRow(const SourceRows& source, std::int64_t row, std::int64_t column, std::int64_t count,
                         T* to) {
  const auto size = static_cast<std::int64_t>(size_of(source.dtype));
  const std::byte* from = source.data + (row * source.row_stride + column * source.column_stride) * size;
  if (source.column_stride == 1 && size == sizeof(T)) {
    std::memcpy(to, from, count * sizeof(T));
    return;
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    if (source.column_stride == 1 && size == 2) return WidenContiguous(from, source.dtype, count, to);
  }
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = load_element<T>(from + i * source.column_stride * size, source.dtype);
}

/// Square blocks of one 128-bit vector a row: to[column][row] = from[row][column], strides in elements.
HWY_INLINE void TransposeBlock(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row);
  const auto c = hn::LoadU(d, from + 2 * from_row), e = hn::LoadU(d, from + 3 * from_row);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * to_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * to_row);
}

HWY_INLINE void TransposeBlock(const double* from, std::int64_t from_row, double* to, std::int64_t to_row) {
  const hn::FixedTag<double, 2> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_row);
}

/// to[column][kUnitKeys] from kUnitKeys rows of `columns` elements.
template <class T>
HWY_INLINE void TransposeUnit(const T* HWY_RESTRICT from, std::int64_t from_row, std::int64_t columns,
                              T* HWY_RESTRICT to) {
  constexpr std::int64_t kSide = 16 / sizeof(T);
  std::int64_t column = 0;
  for (; column + kSide <= columns; column += kSide) {
    for (std::int64_t row = 0; row < kUnitKeys; row += kSide) {
      TransposeBlock(from + row * from_row + column, from_row, to + column * kUnitKeys + row, kUnitKeys);
    }
  }
  for (; column < columns; ++column) {
    for (std::int64_t row = 0; row < kUnitKeys; ++row) to[column * kUnitKeys + row] = from[row * from_row + column];
  }
}

/// One unit: rows [begin, end) of it exist in the source, from source row `source_row` on.
template <class T>
HWY_INLINE void PackUnit(const SourceRows& keys, std::int64_t source_row, std::int64_t begin, std::int64_t end,
                         std::int64_t key_dim, T* unit) {
  constexpr std::int64_t kChunk = 64;  // columns at a time, so that the widened rows stay in L1
  T rows[kUnitKeys * kChunk] = {};
  for (std::int64_t column = 0; column < key_dim; column += kChunk) {
    const std::int64_t count = std::min(kChunk, key_dim - column);
    for (std::int64_t r = begin; r < end; ++r)
      WidenRow(keys, source_row + r - begin, column, count, rows + r * kChunk);
    TransposeUnit(rows, kChunk, count, unit + column * kUnitKeys);
  }
}

template <class T>
void PackKeys(const SourceRows& keys, std::int64_t count, std::int32_t first_column, std::int64_t key_dim,
              T* units) {
  const std::int64_t last = first_column + count;
  for (std::int64_t start = first_column / kUnitKeys * kUnitKeys; start < last; start += kUnitKeys) {
    const std::int64_t begin = std::max<std::int64_t>(first_column, start), end = std::min(last, start + kUnitKeys);
    PackUnit(keys, begin - first_column, begin - start, end - start, key_dim, units + start * key_dim);
  }
}

template <class T>
void PackValues(const SourceRows& values, std::int64_t count, std::int64_t value_dim, std::int64_t unit_stride,
                T* units) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kChunk = 64;
  T row[kChunk] = {};
  for (std::int64_t column = 0; column < value_dim; column += kChunk) {
    const std::int64_t columns = std::min(kChunk, value_dim - column);
    std::fill(row + columns, row + kChunk, T(0));
    for (std::int64_t r = 0; r < count; ++r) {
      WidenRow(values, r, column, columns, row);
      for (std::int64_t unit = 0; unit < columns; unit += kUnitKeys) {
        T* to = units + (column + unit) / kUnitKeys * unit_stride + r * kUnitKeys;
        for (std::int64_t c = 0; c < kUnitKeys; c += hn::Lanes(d))
          hn::StoreU(hn::LoadU(d, row + unit + c), d, to + c);
      }
    }
  }
}

/// row[i] ← row[i]·factor, rounded once; `count` is a multiple of a vector's lanes.
HWY_INLINE void ScaleRow(float* row, std::int64_t count, double factor) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  for (std::int64_t i = 0; i < count; i += hn::Lanes(wide)) {
    const auto product = hn::Mul(hn::PromoteTo(wide, hn::LoadU(narrow, row + i)), hn::Set(wide, factor));
    hn::StoreU(hn::DemoteTo(narrow, product), narrow, row + i);
  }
}

HWY_INLINE void ScaleRow(double* row, std::int64_t count, double factor) {
  for (std::int64_t i = 0; i < count; ++i) row[i] *= factor;
}

/// to[column][row] from `rows` rows of `columns` elements. Six rows go as two squares of four that share two rows.
template <class T>
HWY_INLINE void InterleaveRows(const T* from, std::int64_t from_row, int rows, std::int64_t columns, T* to) {
  constexpr std::int64_t kSide = 16 / sizeof(T);
  std::int64_t column = 0;
  for (; rows == kRowGroup && column + kSide <= columns; column += kSide) {
    for (int row = 0;; row = std::min<int>(row + kSide, kRowGroup - kSide)) {
      TransposeBlock(from + row * from_row + column, from_row, to + column * rows + row, rows);
      if (row == kRowGroup - kSide) break;
    }
  }
  for (; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) to[column * rows + row] = from[row * from_row + column];
  }
}

template <class T>
void PackQueries(const SourceRows* rows, int count, std::int64_t key_dim, double factor, T* group) {
  constexpr std::int64_t kChunk = 64;
  T scaled[kRowGroup][kChunk] = {};
  for (std::int64_t column = 0; column < key_dim; column += kChunk) {
    const std::int64_t columns = std::min(kChunk, key_dim - column);
    for (int r = 0; r < count; ++r) {
      WidenRow(rows[r], 0, column, columns, scaled[r]);
      ScaleRow(scaled[r], kChunk, factor);
    }
    InterleaveRows(scaled[0], kChunk, count, columns, group + column * count);
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

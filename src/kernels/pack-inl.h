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
#include "src/kernels/transpose-inl.h"
#include "src/kernels/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

/// Rows that can be read as they lie: whole numbers of T side by side.
template <class T>
HWY_INLINE const T* InPlace(const SourceRows& source) {
  const bool native = size_of(source.dtype) == sizeof(T) && source.column_stride == 1 &&
                      reinterpret_cast<std::uintptr_t>(source.data) % sizeof(T) == 0;
  return native ? reinterpret_cast<const T*>(source.data) : nullptr;
}

/// One unit: rows [begin, end) of it exist in the source, from source row `source_row` on.
template <class T>
HWY_INLINE void PackUnit(const SourceRows& keys, std::int64_t source_row, std::int64_t begin, std::int64_t end,
                         std::int64_t key_dim, T* unit) {
  const T* in_place = InPlace<T>(keys);
  if (in_place && end - begin == kUnitKeys) {
    const T* rows = in_place + source_row * keys.row_stride;
    return TransposeColumns<kUnitKeys>(rows, keys.row_stride, key_dim, unit);
  }
  if (in_place && (end - begin) * key_dim <= kUnitKeys) {  // a few numbers: not worth a detour
    std::fill_n(unit, key_dim * kUnitKeys, T(0));
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = in_place + (source_row + r - begin) * keys.row_stride;
      for (std::int64_t column = 0; column < key_dim; ++column) unit[column * kUnitKeys + r] = row[column];
    }
    return;
  }
  constexpr std::int64_t kChunk = 64;  // columns at a time, so that the widened rows stay in L1
  T rows[kUnitKeys * kChunk];
  for (std::int64_t column = 0; column < key_dim; column += kChunk) {
    const std::int64_t count = std::min(kChunk, key_dim - column);
    std::fill_n(rows, begin * count, T(0));
    for (std::int64_t r = begin; r < end; ++r)
      WidenRow(keys, source_row + r - begin, column, count, rows + r * count);
    std::fill_n(rows + end * count, (kUnitKeys - end) * count, T(0));
    TransposeColumns<kUnitKeys>(rows, count, count, unit + column * kUnitKeys);
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
void PackValues(const SourceRows& values, std::int64_t count, std::int32_t first_column, std::int64_t value_dim,
                std::int64_t unit_stride, T* units) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kChunk = 64;
  T row[kChunk];
  for (std::int64_t column = 0; column < value_dim; column += kChunk) {
    const std::int64_t columns = std::min(kChunk, value_dim - column);
    std::fill(row + columns, row + kChunk, T(0));
    for (std::int64_t r = 0; r < count; ++r) {
      WidenRow(values, r, column, columns, row);
      for (std::int64_t unit = 0; unit < columns; unit += kUnitKeys) {
        T* to = units + (column + unit) / kUnitKeys * unit_stride + (first_column + r) * kUnitKeys;
        for (std::int64_t c = 0; c < kUnitKeys; c += hn::Lanes(d))
          hn::StoreU(hn::LoadU(d, row + unit + c), d, to + c);
      }
    }
  }
}

/// to[i] ← from[i]·factor, rounded once.
HWY_INLINE void ScaleRow(const float* from, std::int64_t count, double factor, float* to) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const std::int64_t lanes = hn::Lanes(wide);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto product = hn::Mul(hn::PromoteTo(wide, hn::LoadU(narrow, from + i)), hn::Set(wide, factor));
    hn::StoreU(hn::DemoteTo(narrow, product), narrow, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(static_cast<double>(from[i]) * factor);
}

HWY_INLINE void ScaleRow(const double* from, std::int64_t count, double factor, double* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

template <class T>
HWY_INLINE void InterleaveRows(const T* from, std::int64_t from_row, int rows, std::int64_t columns, T* to) {
  if (rows == kRowGroup) return TransposeColumns<kRowGroup>(from, from_row, columns, to);
  for (std::int64_t column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) to[column * rows + row] = from[row * from_row + column];
  }
}

template <class T>
void PackQueries(const SourceRows* rows, int count, std::int64_t key_dim, double factor, T* group) {
  constexpr std::int64_t kChunk = 64;
  T scaled[kRowGroup][kChunk];
  for (std::int64_t column = 0; column < key_dim; column += kChunk) {
    const std::int64_t columns = std::min(kChunk, key_dim - column);
    for (int r = 0; r < count; ++r) {
      const T* from = InPlace<T>(rows[r]);
      if (!from) WidenRow(rows[r], 0, column, columns, scaled[r]);
      ScaleRow(from ? from + column : scaled[r], columns, factor, scaled[r]);
    }
    InterleaveRows(scaled[0], kChunk, count, columns, group + column * count);
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

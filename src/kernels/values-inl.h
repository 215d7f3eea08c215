// The weighted values of a strip: each row's sum over a block's keys, added to its rescaled result.

#if defined(ATTN_KERNELS_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_VALUES_INL_H_
#undef ATTN_KERNELS_VALUES_INL_H_
#else
#define ATTN_KERNELS_VALUES_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/sources-inl.h"
#include "src/kernels/strip-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Keys of a block whose values are added in one go. A block's sums over them may be continued: they then wait in
/// `partial`.
template <class T>
struct ValueKeys {
  std::int32_t begin, end;  // columns
  T* partial;               // [rows of the strip][value_dim]
  bool first, last;         // of the block's keys
};

template <int kRows, int kVectors, class Values, class T>
HWY_INLINE void AddWeightedValues(const BlockTask<T>& strip, const Values& values, int first_row,
                                  const ValueKeys<T>& keys, const T* HWY_RESTRICT rescale, std::int64_t column) {
  const hn::ScalableTag<T> d;
  const std::int64_t first = first_row * strip.value_dim + column;
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  ClearSums(d, sums);
  if (!keys.first) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = hn::LoadU(d, keys.partial + first + r * strip.value_dim + v * kLanes<T>);
    }
  }
  const T* weights = strip.scores + first_row * kBlockKeys;
  const std::int32_t run = values.run();
  for (std::int32_t key = keys.begin; key < keys.end;) {
    const std::int32_t end = std::min(keys.end, (key / run + 1) * run);
    values.template Multiply<kRows, kVectors>(d, Factors<T>{weights + key, kBlockKeys, 1}, key, end - key, column,
                                              sums);
    key = end;
  }
  T* HWY_RESTRICT out = strip.out;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto factor = hn::Set(d, rescale[r]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = first + r * strip.value_dim + v * kLanes<T>;
      if (keys.last) {
        hn::StoreU(hn::MulAdd(hn::LoadU(d, out + at), factor, sums[r][v]), d, out + at);
      } else {
        hn::StoreU(sums[r][v], d, keys.partial + at);
      }
    }
  }
}

// Where values are read from memory, a row of them goes in one piece as far as registers hold its columns, with fewer rows
// of weights: memory is then read front to back. (Panels of 64 columns of 128 in turn reached 9 of 15.6 GB/s.)
inline constexpr int kWideVectors = 8;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kWideRows = 3;
#else
inline constexpr int kWideRows = 1;
#endif

/// Columns from `begin` to `end`, as many vectors side by side as fit; of wide ones a power of two.
template <int kRows, int kMost, class Values, class T>
HWY_NOINLINE void ValuePanel(const BlockTask<T>& strip, const Values& values, int first_row,
                             const ValueKeys<T>& keys, const T* rescale, std::int64_t begin, std::int64_t end) {
  while (begin < end) {
    const int vectors = static_cast<int>(std::min<std::int64_t>((end - begin) / kLanes<T>, kMost));
    int taken = vectors;
    switch (vectors) {
      case 1: AddWeightedValues<kRows, 1>(strip, values, first_row, keys, rescale, begin); break;
      case 2: AddWeightedValues<kRows, 2>(strip, values, first_row, keys, rescale, begin); break;
      case 3:
        if constexpr (kMost == 4) {
          AddWeightedValues<kRows, 3>(strip, values, first_row, keys, rescale, begin);
        } else {
          AddWeightedValues<kRows, 2>(strip, values, first_row, keys, rescale, begin);
          taken = 2;
        }
        break;
      case kWideVectors:
        if constexpr (kMost == kWideVectors)
          AddWeightedValues<kRows, kWideVectors>(strip, values, first_row, keys, rescale, begin);
        break;
      default:
        if constexpr (kMost >= 4) AddWeightedValues<kRows, 4>(strip, values, first_row, keys, rescale, begin);
        taken = 4;
    }
    begin += taken * kLanes<T>;
  }
}

template <class Values, class T>
HWY_INLINE void ValueGroup(const BlockTask<T>& strip, const Values& values, const RowGroup& group,
                           const ValueKeys<T>& keys, const T* rescale, std::int64_t begin, std::int64_t end) {
  const int row = group.first_row;
  switch (group.rows) {
    case 1: return ValuePanel<1, kPanelVectors>(strip, values, row, keys, rescale, begin, end);
    case 2: return ValuePanel<2, kPanelVectors>(strip, values, row, keys, rescale, begin, end);
    case 3: return ValuePanel<3, kPanelVectors>(strip, values, row, keys, rescale, begin, end);
    case 4: return ValuePanel<4, kPanelVectors>(strip, values, row, keys, rescale, begin, end);
    case 5: return ValuePanel<5, kPanelVectors>(strip, values, row, keys, rescale, begin, end);
    default: return ValuePanel<6, kPanelVectors>(strip, values, row, keys, rescale, begin, end);
  }
}

/// A group's rows in parts of nearly equal size.
template <class Values, class T>
HWY_INLINE void WideValueGroup(const BlockTask<T>& strip, const Values& values, const RowGroup& group,
                               const ValueKeys<T>& keys, const T* rescale, std::int64_t begin, std::int64_t end) {
  const int parts = (group.rows + kWideRows - 1) / kWideRows;
  for (int part = 0; part < parts; ++part) {
    const int first = group.rows * part / parts, rows = group.rows * (part + 1) / parts - first;
    const int row = group.first_row + first;
    switch (rows) {
      case 1: ValuePanel<1, kWideVectors>(strip, values, row, keys, rescale + first, begin, end); break;
      case 2:
        if constexpr (kWideRows >= 2)
          ValuePanel<2, kWideVectors>(strip, values, row, keys, rescale + first, begin, end);
        break;
      default:
        if constexpr (kWideRows >= 3)
          ValuePanel<3, kWideVectors>(strip, values, row, keys, rescale + first, begin, end);
    }
  }
}

/// The same sums with hidden keys left out by the mask: only where values hold NaN or Inf, which 0 does not
/// silence. A hidden key otherwise adds fma(0, value, sum) = sum, so both ways give the same bits.
template <class Values, class T>
HWY_NOINLINE void ValueRowOfSeenKeys(const BlockTask<T>& strip, const Values& values, int row, T rescale) {
  const hn::ScalableTag<T> d;
  const RowColumns& columns = strip.columns[row];
  const T* weights = strip.scores + row * kBlockKeys;
  for (std::int64_t column = 0; column < strip.value_dim; column += hn::Lanes(d)) {
    hn::Vec<decltype(d)> sum[1][1];
    ClearSums(d, sum);
    for (std::int32_t key = columns.lowest(); key < columns.highest(); ++key) {
      if (!IsHidden(strip, row, key))
        values.template Multiply<1, 1>(d, Factors<T>{weights + key, 0, 1}, key, 1, column, sum);
    }
    T* to = strip.out + row * strip.value_dim + column;
    hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, rescale), sum[0][0]), d, to);
  }
}

/// The values of the block's columns [begin, end).
template <bool kWide, class Values, class T>
HWY_INLINE void AddValues(const BlockTask<T>& strip, const Values& values, const RowGroups& groups,
                          std::int32_t begin, std::int32_t end, const T* rescale) {
  constexpr int kPanel = (kWide ? kWideVectors : kPanelVectors) * kLanes<T>;
  for (std::int64_t panel = 0; panel < strip.value_dim; panel += kPanel) {
    const std::int64_t panel_end = std::min(panel + kPanel, strip.value_dim);
    for (int g = 0; g < groups.count; ++g) {
      const RowGroup& group = groups.of[g];
      const ValueKeys<T> keys{std::max(begin, group.lowest), std::min(end, group.highest), strip.partial_out,
                              begin <= group.lowest, end >= group.highest};
      if (keys.begin >= keys.end) continue;
      if constexpr (kWide) {
        WideValueGroup(strip, values, group, keys, rescale + group.first_row, panel, panel_end);
      } else {
        ValueGroup(strip, values, group, keys, rescale + group.first_row, panel, panel_end);
      }
    }
  }
}

template <class Values, class T>
HWY_INLINE void AddSeenValues(const BlockTask<T>& strip, const Values& values, const T* rescale) {
  for (int row = 0; row < strip.rows; ++row) {
    if (!strip.columns[row].empty()) ValueRowOfSeenKeys(strip, values, row, rescale[row]);
  }
}

// Values that are read from memory go a few keys at a time, so that all rows pass over them while they are in L1.

template <CacheType kType>
HWY_NOINLINE void StoredValueStrip(const BlockTask<float>& strip, const RowGroups& groups, const float* rescale) {
  const KeyBlock<float>& block = *strip.block;
  const StoredValues<kType> values{block};
  if (strip.leave_out_hidden) return AddSeenValues(strip, values, rescale);
  constexpr std::int32_t kStep = kType == CacheType::f32 ? kValueKeys : kValueKeys / 2;
  for (std::int32_t begin = 0; begin < block.end_key; begin += kStep) {
    AskForNext(block, block.values, begin + kStep, block.next);
    AddValues<true>(strip, values, groups, begin, begin + kStep, rescale);
  }
}

template <class T>
HWY_INLINE void PlainValueStrip(const BlockTask<T>& strip, const RowGroups& groups, const T* rescale) {
  const PlainValues<T, false> values{*strip.block};
  if (strip.leave_out_hidden) return AddSeenValues(strip, values, rescale);
  if (!strip.partial_out) return AddValues<false>(strip, values, groups, 0, kBlockKeys, rescale);
  const PlainValues<T, true> streamed{*strip.block};
  for (std::int32_t begin = 0; begin < kBlockKeys; begin += kValueKeys)
    AddValues<true>(strip, streamed, groups, begin, begin + kValueKeys, rescale);
}

template <class T>
HWY_INLINE void ValueStrip(const BlockTask<T>& strip, const RowGroups& groups, const T* rescale) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (const UnitLayout* stored = strip.block->stored) {
      switch (stored->type) {
        case CacheType::bf16: return StoredValueStrip<CacheType::bf16>(strip, groups, rescale);
        case CacheType::f16: return StoredValueStrip<CacheType::f16>(strip, groups, rescale);
        case CacheType::q8: return StoredValueStrip<CacheType::q8>(strip, groups, rescale);
        case CacheType::f32: return StoredValueStrip<CacheType::f32>(strip, groups, rescale);
      }
    }
  }
  PlainValueStrip(strip, groups, rescale);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// The weighted values of a strip: each row's sum over a block's keys, added to its rescaled result.

#if defined(ATTN_KERNELS_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_VALUES_INL_H_
#undef ATTN_KERNELS_VALUES_INL_H_
#else
#define ATTN_KERNELS_VALUES_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/multiply-inl.h"
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

template <int kRows, int kVectors, class T>
HWY_INLINE void AddWeightedValues(const Operands<T>& operands, const ValueKeys<T>& keys,
                                  const T* HWY_RESTRICT rescale, T* HWY_RESTRICT out, std::int64_t first,
                                  std::int64_t row_stride) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  ClearSums(d, sums);
  if (!keys.first) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = hn::LoadU(d, keys.partial + first + r * row_stride + v * kLanes<T>);
    }
  }
  Multiply(d, operands, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto factor = hn::Set(d, rescale[r]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = first + r * row_stride + v * kLanes<T>;
      if (keys.last) {
        hn::StoreU(hn::MulAdd(hn::LoadU(d, out + at), factor, sums[r][v]), d, out + at);
      } else {
        hn::StoreU(sums[r][v], d, keys.partial + at);
      }
    }
  }
}

template <int kRows, class T>
HWY_NOINLINE void ValuePanel(const BlockTask<T>& strip, const RowGroup& group, const ValueKeys<T>& keys,
                             const T* rescale, std::int64_t begin, std::int64_t end) {
  const T* weights = strip.scores + group.first_row * kBlockKeys + keys.begin;
  const T* values = strip.values + (keys.begin - strip.first_value) * strip.value_stride;
  const std::int64_t row = group.first_row * strip.value_dim;
  while (begin < end) {
    const Operands<T> operands{weights,
                               kBlockKeys,
                               1,
                               values + begin / kUnitKeys * strip.value_unit + begin % kUnitKeys,
                               strip.value_stride,
                               strip.value_unit,
                               keys.end - keys.begin};
    const int vectors = static_cast<int>(std::min<std::int64_t>((end - begin) / kLanes<T>, kPanelVectors));
    switch (vectors) {
      case 1: AddWeightedValues<kRows, 1>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
      case 2: AddWeightedValues<kRows, 2>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
      case 3: AddWeightedValues<kRows, 3>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
      case 4: AddWeightedValues<kRows, 4>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
#endif
      default: return;
    }
    begin += vectors * kLanes<T>;
  }
}

template <class T>
HWY_INLINE void ValueGroup(const BlockTask<T>& strip, const RowGroup& group, const ValueKeys<T>& keys,
                           const T* rescale, std::int64_t begin, std::int64_t end) {
  switch (group.rows) {
    case 1: return ValuePanel<1>(strip, group, keys, rescale, begin, end);
    case 2: return ValuePanel<2>(strip, group, keys, rescale, begin, end);
    case 3: return ValuePanel<3>(strip, group, keys, rescale, begin, end);
    case 4: return ValuePanel<4>(strip, group, keys, rescale, begin, end);
    case 5: return ValuePanel<5>(strip, group, keys, rescale, begin, end);
    default: return ValuePanel<6>(strip, group, keys, rescale, begin, end);
  }
}

/// The same sums with hidden keys left out by the mask: only where values hold NaN or Inf, which 0 does not
/// silence. A hidden key otherwise adds fma(0, value, sum) = sum, so both ways give the same bits.
template <class T>
HWY_NOINLINE void ValueRowOfSeenKeys(const BlockTask<T>& strip, int row, T rescale) {
  const hn::ScalableTag<T> d;
  const RowColumns& columns = strip.columns[row];
  const T* weights = strip.scores + row * kBlockKeys;
  for (std::int64_t column = 0; column < strip.value_dim; column += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (std::int32_t key = columns.lowest(); key < columns.highest(); ++key) {
      if (IsHidden(strip, row, key)) continue;
      const T* value = strip.values + (key - strip.first_value) * strip.value_stride +
                       column / kUnitKeys * strip.value_unit + column % kUnitKeys;
      sum = hn::MulAdd(hn::Set(d, weights[key]), hn::LoadU(d, value), sum);
    }
    T* to = strip.out + row * strip.value_dim + column;
    hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, rescale), sum), d, to);
  }
}

template <class T>
HWY_INLINE void AddValues(const BlockTask<T>& strip, const RowGroups& groups, std::int32_t begin, std::int32_t end,
                          const T* rescale) {
  for (std::int64_t panel = 0; panel < strip.value_dim; panel += kPanelColumns<T>) {
    const std::int64_t panel_end = std::min(panel + kPanelColumns<T>, strip.value_dim);
    for (int g = 0; g < groups.count; ++g) {
      const RowGroup& group = groups.of[g];
      const ValueKeys<T> keys{std::max(begin, group.lowest), std::min(end, group.highest), strip.partial_out,
                              begin <= group.lowest, end >= group.highest};
      if (keys.begin < keys.end) ValueGroup(strip, group, keys, rescale + group.first_row, panel, panel_end);
    }
  }
}

/// Values that several panels of columns read from memory go a few keys at a time, so that all panels pass over them
/// while they are in L1, and memory is read front to back.
template <class T>
HWY_INLINE void ValueStrip(const BlockTask<T>& strip, const RowGroups& groups, const T* rescale) {
  const std::int32_t step = strip.partial_out ? kValueKeys : static_cast<std::int32_t>(kBlockKeys);
  for (std::int32_t begin = 0; begin < kBlockKeys; begin += step)
    AddValues(strip, groups, begin, begin + step, rescale);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

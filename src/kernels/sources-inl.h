// Keys and values as a product reads them: numbers T where they lie, or the 16-bit and 8-bit units of a cache, widened in
// registers. Widening is exact, so that how numbers are stored shows in their values alone.

#if defined(ATTN_KERNELS_SOURCES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_SOURCES_INL_H_
#undef ATTN_KERNELS_SOURCES_INL_H_
#else
#define ATTN_KERNELS_SOURCES_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/kernels.h"
#include "src/kernels/multiply-inl.h"
#include "src/kernels/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- B of a product, by how its numbers are stored (the concept is Columns, in multiply-inl.h)

/// Pairs of steps, [step/2][columns][2].
struct Bf16Columns {
  static constexpr int kStepsTogether = 2;
  const std::uint32_t* at;
  std::int64_t step;  // from pair to pair
  std::int64_t unit;

  template <int kStep, class D>
  HWY_INLINE hn::Vec<D> Load(D d, int v) const {
    const hn::RebindToUnsigned<D> bits;
    const auto pair = hn::LoadU(bits, at + VectorOffset<float>(v, unit));
    if constexpr (kStep == 0) return hn::BitCast(d, hn::ShiftLeft<16>(pair));
    return hn::BitCast(d, hn::And(pair, hn::Set(bits, 0xFFFF0000u)));
  }
  HWY_INLINE void Advance() { at += step; }
};

struct F16Columns {
  static constexpr int kStepsTogether = 1;
  const std::uint16_t* at;
  std::int64_t step;
  std::int64_t unit;

  template <int kStep, class D>
  HWY_INLINE hn::Vec<D> Load(D d, int v) const {
    const hn::Rebind<std::uint16_t, D> halves;
    return WidenF16(d, hn::LoadU(halves, at + VectorOffset<float>(v, unit)));
  }
  HWY_INLINE void Advance() { at += step; }
};

template <class D>
HWY_INLINE hn::Vec<D> WidenInt8(D d, const std::int8_t* from) {
  const hn::Rebind<std::int8_t, D> bytes;
  const hn::RebindToSigned<D> integers;
  return hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(bytes, from)));
}

/// A group of dims of q8 keys: each column has its scale, the same for all steps.
struct Q8KeyColumns {
  static constexpr int kStepsTogether = 1;
  const std::int8_t* at;
  std::int64_t step;
  std::int64_t unit;
  const float* scales;  // of the columns, side by side

  template <int kStep, class D>
  HWY_INLINE hn::Vec<D> Load(D d, int v) const {
    return hn::Mul(WidenInt8(d, at + VectorOffset<float>(v, unit)), hn::LoadU(d, scales + v * kLanes<float>));
  }
  HWY_INLINE void Advance() { at += step; }
};

/// Columns of q8 values, from a multiple of a group's on: each group has a scale a step, [group][kUnitKeys].
struct Q8ValueColumns {
  static constexpr int kStepsTogether = 1;
  const std::int8_t* at;
  std::int64_t step;
  std::int64_t unit;
  const float* scales;

  template <int kStep, class D>
  HWY_INLINE hn::Vec<D> Load(D d, int v) const {
    const std::int64_t group = v * kLanes<float> / kScaleGroup;
    return hn::Mul(WidenInt8(d, at + VectorOffset<float>(v, unit)), hn::Set(d, scales[group * kUnitKeys]));
  }
  HWY_INLINE void Advance() {
    at += step;
    ++scales;
  }
};

/// B, and asks for the memory from `ahead` on as steps go by, kBytes at a time: what is read next arrives meanwhile. It is
/// asked to L2, since of lines to L1 only 16 can be on their way (measured: 16 GB/s to L2 whatever the distance, 12 to 13
/// to L1).
template <class B, int kBytes>
struct Ahead : B {
  const std::byte* ahead;

  HWY_INLINE void Advance() {
    constexpr int kLine = 64;
#pragma GCC unroll 8
    for (int at = 0; at < kBytes; at += kLine) __builtin_prefetch(ahead + at, /*write=*/0, /*to L2:*/ 2);
    ahead += kBytes;
    B::Advance();
  }
};

HWY_INLINE void WidenScales(const std::byte* from, std::int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint16_t, decltype(d)> halves;
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
  for (std::int64_t i = 0; i < count; i += kLanes<float>)
    hn::StoreU(WidenF16(d, hn::LoadU(halves, bits + i)), d, to + i);
}

// Units of keys side by side.
inline constexpr int kStoredVectors = kPanelVectors;

// ---- keys: `Multiply` adds q·k of the columns from `column` on to the sums of kRows queries [d][kRows]

/// Units of T; the first holds column `first`.
template <class T>
struct PlainKeys {
  static constexpr int kVectors = kPanelVectors;
  const T* units;
  std::int32_t first;

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const T* queries, std::int64_t key_dim, std::int32_t column,
                           hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int64_t unit = key_dim * kUnitKeys, at = column - first;
    const Columns<T> columns{units + at / kUnitKeys * unit + at % kUnitKeys, kUnitKeys, unit};
    HWY_NAMESPACE::Multiply(d, Factors<T>{queries, 1, kRows}, columns, key_dim, sums);
  }
};

/// Where a stored unit, of keys or values, lies: pieces of `piece_keys` columns.
HWY_INLINE const std::byte* StoredUnit(const void* const* pieces, std::int32_t piece_keys, std::int32_t column,
                                       std::int64_t unit_bytes) {
  return static_cast<const std::byte*>(pieces[column / piece_keys]) +
         column % piece_keys / static_cast<std::int32_t>(kUnitKeys) * unit_bytes;
}

/// Units of a cache, of kType; columns that go together lie in one piece. `ahead` is what will be read after them.
template <CacheType kType>
struct StoredKeys {
  static constexpr int kVectors = kStoredVectors;
  const KeyBlock<float>& block;
  const std::byte* ahead;

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const float* queries, std::int64_t key_dim, std::int32_t column,
                           hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int64_t bytes = block.stored->key_bytes(), lane = column % kUnitKeys;
    const std::byte* unit = StoredUnit(block.keys, block.piece_keys, column, bytes);
    const Factors<float> factors{queries, 1, kRows};
    constexpr int kNumbers = kVectors * kLanes<float>;  // of a step
    if constexpr (kType == CacheType::f32) {
      const Columns<float> numbers{reinterpret_cast<const float*>(unit) + lane, kUnitKeys, bytes / 4};
      HWY_NAMESPACE::Multiply(d, factors, Ahead<Columns<float>, 4 * kNumbers>{numbers, ahead}, key_dim, sums);
    } else if constexpr (kType == CacheType::bf16) {
      const Bf16Columns pairs{reinterpret_cast<const std::uint32_t*>(unit) + lane, kUnitKeys, bytes / 4};
      HWY_NAMESPACE::Multiply(d, factors, Ahead<Bf16Columns, 4 * kNumbers>{pairs, ahead}, key_dim, sums);
    } else if constexpr (kType == CacheType::f16) {
      const F16Columns halves{reinterpret_cast<const std::uint16_t*>(unit) + lane, kUnitKeys, bytes / 2};
      HWY_NAMESPACE::Multiply(d, factors, Ahead<F16Columns, 2 * kNumbers>{halves, ahead}, key_dim, sums);
    } else {
      for (std::int64_t first = 0; first < key_dim; first += kScaleGroup) {
        float scales[kNumbers];
        const std::byte* from = unit + block.stored->key_scales() + (first / kScaleGroup * kUnitKeys + lane) * 2;
        for (int v = 0; v < kVectors; ++v)
          WidenScales(from + VectorOffset<float>(v, bytes / 2) * 2, kLanes<float>, scales + v * kLanes<float>);
        const auto* at = reinterpret_cast<const std::int8_t*>(unit) + first * kUnitKeys + lane;
        const Q8KeyColumns numbers{at, kUnitKeys, bytes, scales};
        HWY_NAMESPACE::Multiply(d, Factors<float>{queries + first * kRows, 1, kRows},
                                Ahead<Q8KeyColumns, kNumbers>{numbers, ahead + first * kNumbers},
                                std::min(kScaleGroup, key_dim - first), sums);
      }
    }
  }
};

// ---- values: `Multiply` adds weights·v of `count` keys from block column `key` on, which do not leave their run

template <class T>
struct PlainValues {
  const KeyBlock<T>& block;

  PlainValues AskedFor() const { return *this; }

  /// Neighbouring keys that Multiply takes at once start at multiples of this.
  std::int32_t run() const { return block.piece_keys; }

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const Factors<T>& weights, std::int32_t key, std::int64_t count,
                           std::int64_t column, hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int32_t row = key % block.piece_keys - block.first_value;
    const T* values = static_cast<const T*>(block.values[key / block.piece_keys]) + row * block.value_stride;
    const Columns<T> columns{values + column / kUnitKeys * block.value_unit + column % kUnitKeys,
                             block.value_stride, block.value_unit};
    HWY_NAMESPACE::Multiply(d, weights, columns, count, sums);
  }
};

/// `here` is the unit of the keys, `ahead` what will be read after it.
template <CacheType kType>
struct StoredValues {
  const KeyBlock<float>& block;
  const std::byte* here;
  const std::byte* ahead;

  /// The same values once more: what comes after them was asked for already.
  StoredValues AskedFor() const { return {block, here, here}; }

  std::int32_t run() const { return static_cast<std::int32_t>(kUnitKeys); }

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const Factors<float>& weights, std::int32_t key, std::int64_t count,
                           std::int64_t column, hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int64_t stride = block.stored->value_columns(), token = key % kUnitKeys;
    const std::byte* unit = StoredUnit(block.values, block.piece_keys, key, block.stored->value_bytes());
    constexpr int kNumbers = kVectors * kLanes<float>;  // of a step
    if constexpr (kType == CacheType::f32) {
      const Columns<float> numbers{reinterpret_cast<const float*>(unit) + token * stride + column, stride,
                                   kUnitKeys};
      HWY_NAMESPACE::Multiply(d, weights, Ahead<Columns<float>, 4 * kNumbers>{numbers, ahead}, count, sums);
    } else if constexpr (kType == CacheType::bf16) {
      Bf16Columns pairs{reinterpret_cast<const std::uint32_t*>(unit) + token / 2 * stride + column, stride,
                        kUnitKeys};
      Factors<float> rest = weights;
      if (token % 2 == 1) {  // the second of a pair
        MultiplyStep<kRows, kVectors, 1>(d, rest.a, rest.row, pairs, sums);
        rest.a += rest.step;
        pairs.Advance();
        --count;
      }
      HWY_NAMESPACE::Multiply(d, rest, Ahead<Bf16Columns, 4 * kNumbers>{pairs, ahead}, count, sums);
    } else if constexpr (kType == CacheType::f16) {
      const F16Columns halves{reinterpret_cast<const std::uint16_t*>(unit) + token * stride + column, stride,
                              kUnitKeys};
      HWY_NAMESPACE::Multiply(d, weights, Ahead<F16Columns, 2 * kNumbers>{halves, ahead}, count, sums);
    } else {
      constexpr std::int64_t kGroups = (kNumbers + kScaleGroup - 1) / kScaleGroup;
      float scales[kGroups * kUnitKeys];
      WidenScales(unit + block.stored->value_scales() + column / kScaleGroup * kUnitKeys * 2, kGroups * kUnitKeys,
                  scales);
      const auto* at = reinterpret_cast<const std::int8_t*>(unit) + token * stride + column;
      const Q8ValueColumns numbers{at, stride, kUnitKeys, scales + token};
      HWY_NAMESPACE::Multiply(d, weights, Ahead<Q8ValueColumns, kNumbers>{numbers, ahead}, count, sums);
    }
  }
};

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

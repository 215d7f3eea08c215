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

/// Asks for the first lines of what is read next: the processor then fetches the lines behind them by itself.
HWY_INLINE void AskForStart(const void* from) {
  constexpr std::int64_t kLine = 64;
  hwy::Prefetch(static_cast<const std::byte*>(from));
  hwy::Prefetch(static_cast<const std::byte*>(from) + kLine);
}

/// B that is read from memory front to back, kBytes of it a step (or a pair of steps). Processors fetch ahead within 4 KiB
/// and start anew behind: so where a page begins the next one is asked for, and besides what lies a little ahead.
/// (Reading and multiplying bf16 keys: 13 GB/s without, 14.6 with pages asked for, 17 with both; reading alone 15.6;
/// asking only for what lies far ahead, to L1 or L2: 11 to 14.)
template <class B, int kBytes>
struct FromMemory : B {
  HWY_INLINE void Advance() {
    constexpr std::uintptr_t kPage = 4096, kLine = 64, kNear = 3072;
    const auto* at = reinterpret_cast<const std::byte*>(B::at);
#pragma GCC unroll 8
    for (std::uintptr_t line = 0; line < kBytes; line += kLine) hwy::Prefetch(at + kNear + line);
    const std::uintptr_t in_page = reinterpret_cast<std::uintptr_t>(at) % kPage;
    if (in_page < static_cast<std::uintptr_t>(B::step) * sizeof(*B::at)) AskForStart(at + kPage - in_page);
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

/// Asks for what is read after the columns before `next`: the piece that starts there, or, behind the block's last key,
/// `behind`. Within a piece FromMemory does.
HWY_INLINE void AskForNext(const KeyBlock<float>& block, const void* const* pieces, std::int32_t next,
                           const void* behind) {
  if (next >= block.end_key) {
    AskForStart(behind);
  } else if (next % block.piece_keys == 0) {
    AskForStart(pieces[next / block.piece_keys]);
  }
}

// One unit at a time: memory is read front to back.
inline constexpr int kStoredVectors = std::max(1, static_cast<int>(kUnitKeys) / kLanes<float>);

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

/// Units of a cache, of kType; columns that go together lie in one piece.
template <CacheType kType>
struct StoredKeys {
  static constexpr int kVectors = kStoredVectors;
  const KeyBlock<float>& block;

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const float* queries, std::int64_t key_dim, std::int32_t column,
                           hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int64_t bytes = block.stored->key_bytes(), lane = column % kUnitKeys;
    const std::byte* unit = StoredUnit(block.keys, block.piece_keys, column, bytes);
    const Factors<float> factors{queries, 1, kRows};
    constexpr int kNumbers = kVectors * kLanes<float>;  // of a step
    if constexpr (kType == CacheType::f32) {
      const Columns<float> numbers{reinterpret_cast<const float*>(unit) + lane, kUnitKeys, bytes / 4};
      HWY_NAMESPACE::Multiply(d, factors, FromMemory<Columns<float>, 4 * kNumbers>{numbers}, key_dim, sums);
    } else if constexpr (kType == CacheType::bf16) {
      const Bf16Columns pairs{reinterpret_cast<const std::uint32_t*>(unit) + lane, kUnitKeys, bytes / 4};
      HWY_NAMESPACE::Multiply(d, factors, FromMemory<Bf16Columns, 4 * kNumbers>{pairs}, key_dim, sums);
    } else if constexpr (kType == CacheType::f16) {
      const F16Columns halves{reinterpret_cast<const std::uint16_t*>(unit) + lane, kUnitKeys, bytes / 2};
      HWY_NAMESPACE::Multiply(d, factors, FromMemory<F16Columns, 2 * kNumbers>{halves}, key_dim, sums);
    } else {
      for (std::int64_t first = 0; first < key_dim; first += kScaleGroup) {
        float scales[kNumbers];
        const std::byte* from = unit + (first / kScaleGroup * kUnitKeys + lane) * 2;
        for (int v = 0; v < kVectors; ++v)
          WidenScales(from + VectorOffset<float>(v, bytes / 2) * 2, kLanes<float>, scales + v * kLanes<float>);
        const auto* at =
            reinterpret_cast<const std::int8_t*>(unit + block.stored->key_numbers()) + first * kUnitKeys + lane;
        const Q8KeyColumns numbers{at, kUnitKeys, bytes, scales};
        HWY_NAMESPACE::Multiply(d, Factors<float>{queries + first * kRows, 1, kRows},
                                FromMemory<Q8KeyColumns, kNumbers>{numbers}, std::min(kScaleGroup, key_dim - first),
                                sums);
      }
    }
  }
};

// ---- values: `Multiply` adds weights·v of `count` keys from block column `key` on, which do not leave their run

template <class T, bool kFromMemory>
struct PlainValues {
  const KeyBlock<T>& block;

  /// Neighbouring keys that Multiply takes at once start at multiples of this.
  std::int32_t run() const { return block.piece_keys; }

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const Factors<T>& weights, std::int32_t key, std::int64_t count,
                           std::int64_t column, hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int32_t row = key % block.piece_keys - block.first_value;
    const T* values = static_cast<const T*>(block.values[key / block.piece_keys]) + row * block.value_stride;
    const Columns<T> columns{values + column / kUnitKeys * block.value_unit + column % kUnitKeys,
                             block.value_stride, block.value_unit};
    if constexpr (kFromMemory) {
      constexpr int kBytes = kVectors * kLanes<T> * static_cast<int>(sizeof(T));
      HWY_NAMESPACE::Multiply(d, weights, FromMemory<Columns<T>, kBytes>{columns}, count, sums);
    } else {
      HWY_NAMESPACE::Multiply(d, weights, columns, count, sums);
    }
  }
};

template <CacheType kType>
struct StoredValues {
  const KeyBlock<float>& block;

  /// Rows follow each other through all units of a piece, but for scales between units.
  std::int32_t run() const {
    return kType == CacheType::q8 ? static_cast<std::int32_t>(kUnitKeys) : block.piece_keys;
  }

  template <int kRows, int kVectors, class D>
  HWY_INLINE void Multiply(D d, const Factors<float>& weights, std::int32_t key, std::int64_t count,
                           std::int64_t column, hn::Vec<D> (&sums)[kRows][kVectors]) const {
    const std::int64_t stride = block.stored->value_columns(), token = key % kUnitKeys;
    const std::byte* unit = StoredUnit(block.values, block.piece_keys, key, block.stored->value_bytes());
    constexpr int kNumbers = kVectors * kLanes<float>;  // of a step
    if constexpr (kType == CacheType::f32) {
      const Columns<float> numbers{reinterpret_cast<const float*>(unit) + token * stride + column, stride,
                                   kUnitKeys};
      HWY_NAMESPACE::Multiply(d, weights, FromMemory<Columns<float>, 4 * kNumbers>{numbers}, count, sums);
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
      HWY_NAMESPACE::Multiply(d, rest, FromMemory<Bf16Columns, 4 * kNumbers>{pairs}, count, sums);
    } else if constexpr (kType == CacheType::f16) {
      const F16Columns halves{reinterpret_cast<const std::uint16_t*>(unit) + token * stride + column, stride,
                              kUnitKeys};
      HWY_NAMESPACE::Multiply(d, weights, FromMemory<F16Columns, 2 * kNumbers>{halves}, count, sums);
    } else {
      constexpr std::int64_t kGroups = (kNumbers + kScaleGroup - 1) / kScaleGroup;
      float scales[kGroups * kUnitKeys];
      WidenScales(unit + column / kScaleGroup * kUnitKeys * 2, kGroups * kUnitKeys, scales);
      const auto* at =
          reinterpret_cast<const std::int8_t*>(unit + block.stored->value_numbers()) + token * stride + column;
      const Q8ValueColumns numbers{at, stride, kUnitKeys, scales + token};
      HWY_NAMESPACE::Multiply(d, weights, FromMemory<Q8ValueColumns, kNumbers>{numbers}, count, sums);
    }
  }
};

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

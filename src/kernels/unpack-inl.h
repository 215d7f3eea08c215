// The units of a cache to those of T, for tiles that read them more than once.

#if defined(ATTN_KERNELS_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_UNPACK_INL_H_
#undef ATTN_KERNELS_UNPACK_INL_H_
#else
#define ATTN_KERNELS_UNPACK_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/kernels.h"
#include "src/kernels/sources-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One vector of each step of B: step s to `to + s · kUnitKeys`.
template <class B>
HWY_INLINE void StoreSteps(B columns, std::int64_t steps, float* HWY_RESTRICT to) {
  const hn::ScalableTag<float> d;
  constexpr int kTogether = B::kStepsTogether;
  std::int64_t step = 0;
  for (; step + kTogether <= steps; step += kTogether) {
    hn::StoreU(columns.template Load<0>(d, 0), d, to + step * kUnitKeys);
    if constexpr (kTogether == 2) hn::StoreU(columns.template Load<1>(d, 0), d, to + (step + 1) * kUnitKeys);
    columns.Advance();
  }
  if constexpr (kTogether == 2) {
    if (step < steps) hn::StoreU(columns.template Load<0>(d, 0), d, to + step * kUnitKeys);
  }
}

/// Dims of a unit's columns [lane, lane + kLanes), to `to` [key_dim][kUnitKeys].
HWY_INLINE void UnpackKeyLanes(const UnitLayout& layout, const std::byte* unit, std::int64_t lane, float* to) {
  const std::int64_t dims = layout.key_dim;
  switch (layout.type) {
    case CacheType::f32:
      return StoreSteps(Columns<float>{reinterpret_cast<const float*>(unit) + lane, kUnitKeys, 0}, dims, to);
    case CacheType::f16:
      return StoreSteps(F16Columns{reinterpret_cast<const std::uint16_t*>(unit) + lane, kUnitKeys, 0}, dims, to);
    case CacheType::bf16:
      return StoreSteps(Bf16Columns{reinterpret_cast<const std::uint32_t*>(unit) + lane, kUnitKeys, 0}, dims, to);
    case CacheType::q8: break;
  }
  for (std::int64_t first = 0; first < dims; first += kScaleGroup) {
    float scales[kLanes<float>];
    WidenScales(unit + (first / kScaleGroup * kUnitKeys + lane) * 2, kLanes<float>, scales);
    const auto* numbers =
        reinterpret_cast<const std::int8_t*>(unit + layout.key_numbers()) + first * kUnitKeys + lane;
    StoreSteps(Q8KeyColumns{numbers, kUnitKeys, 0, scales}, std::min(kScaleGroup, dims - first),
               to + first * kUnitKeys);
  }
}

/// The 16 tokens' columns [column, column + kLanes), to `to` [kUnitKeys][kUnitKeys].
HWY_INLINE void UnpackValueColumns(const UnitLayout& layout, const std::byte* unit, std::int64_t column,
                                   float* to) {
  const std::int64_t stride = layout.value_columns();
  switch (layout.type) {
    case CacheType::f32:
      return StoreSteps(Columns<float>{reinterpret_cast<const float*>(unit) + column, stride, 0}, kUnitKeys, to);
    case CacheType::f16:
      return StoreSteps(F16Columns{reinterpret_cast<const std::uint16_t*>(unit) + column, stride, 0}, kUnitKeys,
                        to);
    case CacheType::bf16:
      return StoreSteps(Bf16Columns{reinterpret_cast<const std::uint32_t*>(unit) + column, stride, 0}, kUnitKeys,
                        to);
    case CacheType::q8: break;
  }
  float scales[kUnitKeys];
  WidenScales(unit + column / kScaleGroup * kUnitKeys * 2, kUnitKeys, scales);
  const auto* numbers = reinterpret_cast<const std::int8_t*>(unit + layout.value_numbers()) + column;
  StoreSteps(Q8ValueColumns{numbers, stride, 0, scales}, kUnitKeys, to);
}

void UnpackKeys(const UnitLayout& layout, const std::byte* unit, std::int64_t /*tokens*/, std::int32_t first_column,
                float* units) {
  for (std::int64_t lane = 0; lane < kUnitKeys; lane += kLanes<float>)
    UnpackKeyLanes(layout, unit, lane, units + first_column * layout.key_dim + lane);
}

void UnpackValues(const UnitLayout& layout, const std::byte* unit, std::int64_t /*tokens*/,
                  std::int32_t first_column, std::int64_t unit_stride, float* units) {
  for (std::int64_t column = 0; column < layout.value_columns(); column += kLanes<float>) {
    float* to = units + column / kUnitKeys * unit_stride + first_column * kUnitKeys + column % kUnitKeys;
    UnpackValueColumns(layout, unit, column, to);
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// 16-bit numbers to f32.

#if defined(ATTN_KERNELS_WIDEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_WIDEN_INL_H_
#undef ATTN_KERNELS_WIDEN_INL_H_
#else
#define ATTN_KERNELS_WIDEN_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V WidenBf16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> halves) {
  const hn::RebindToUnsigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, halves)));
}

/// Exact on all targets: the instruction where there is one, and otherwise our own conversion (Highway 1.0.3's is wrong
/// on some); see widen_f16.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WidenF16(D d, hn::Vec<hn::Rebind<std::uint16_t, D>> halves) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
#else
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
#endif
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

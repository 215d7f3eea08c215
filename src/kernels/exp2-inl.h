// exp2 and tanh, a vector at a time: the lanes do what src/arithmetic/scalar.h does.

#if defined(ATTN_KERNELS_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_EXP2_INL_H_
#undef ATTN_KERNELS_EXP2_INL_H_
#else
#define ATTN_KERNELS_EXP2_INL_H_
#endif

#include "hwy/highway.h"
#include "src/arithmetic/constants.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Exp2Vectors {
  V doubled_part, half_power, fraction;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE Exp2Vectors<V> SplitExp2(D d, V x) {
  using Constants = Exp2<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> bits;
  // The operand order keeps NaN: x86 returns the second where one is NaN.
  x = hn::Max(hn::Set(d, Constants::kLowest), x);
  const V round = hn::Set(d, Constants::kRound);
  const V rounded = hn::Add(x, round);
  const V fraction = hn::Sub(x, hn::Sub(rounded, round));
  const V power = hn::BitCast(d, hn::ShiftLeft<Constants::kMantissaBits>(hn::BitCast(bits, rounded)));
  V polynomial = hn::Set(d, Constants::kCoefficients[Constants::kDegree]);
#pragma GCC unroll 16
  for (int i = Constants::kDegree - 1; i >= 1; --i) {
    polynomial = hn::MulAdd(polynomial, fraction, hn::Set(d, Constants::kCoefficients[i]));
  }
  return {polynomial, power, fraction};
}

/// 2^x for x ≤ 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Nonpositive(D d, V x) {
  const Exp2Vectors<V> parts = SplitExp2(d, x);
  const V two = hn::Set(d, Exp2<hn::TFromD<D>>::kCoefficients[0]);
  return hn::Mul(hn::MulAdd(parts.doubled_part, parts.fraction, two), parts.half_power);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V z) {
  using T = hn::TFromD<D>;
  const V two = hn::Set(d, T(2));
  const Exp2Vectors<V> parts = SplitExp2(d, hn::Mul(hn::Set(d, static_cast<T>(-2 * kLog2E)), hn::Abs(z)));
  const V power_minus_one = hn::MulAdd(two, parts.half_power, hn::Set(d, T(-1)));
  const V e = hn::MulAdd(hn::Mul(parts.doubled_part, parts.fraction), parts.half_power, power_minus_one);
  return hn::CopySign(hn::Div(e, hn::Add(two, e)), z);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

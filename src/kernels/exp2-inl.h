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

// Each step for all vectors before the next step: the scheduler of a core does not reach far enough to find the next
// vector's work by itself (8 vectors together run at 8.6 cycles a vector in the softmax, 4 at 9.4).
#define ATTN_EACH_VECTOR _Pragma("GCC unroll 16") for (int v = 0; v < kVectors; ++v)

/// Of several vectors at once: 2^x = (doubled_part·fraction + 2)·half_power; the fraction takes the place of x. (Arrays, not
/// a struct: GCC cannot give a struct of NEON vectors its constructor.)
template <int kVectors, class D, class V = hn::Vec<D>>
HWY_INLINE void SplitExp2(D d, V (&x)[kVectors], V (&doubled_part)[kVectors], V (&half_power)[kVectors]) {
  using Constants = Exp2<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> bits;
  const V round = hn::Set(d, Constants::kRound);
  // The operand order keeps NaN: x86 returns the second where one is NaN.
  ATTN_EACH_VECTOR x[v] = hn::Max(hn::Set(d, Constants::kLowest), x[v]);
  ATTN_EACH_VECTOR half_power[v] = hn::Add(x[v], round);
  ATTN_EACH_VECTOR x[v] = hn::Sub(x[v], hn::Sub(half_power[v], round));
  ATTN_EACH_VECTOR half_power[v] =
      hn::BitCast(d, hn::ShiftLeft<Constants::kMantissaBits>(hn::BitCast(bits, half_power[v])));
  ATTN_EACH_VECTOR doubled_part[v] = hn::Set(d, Constants::kCoefficients[Constants::kDegree]);
#pragma GCC unroll 16
  for (int i = Constants::kDegree - 1; i >= 1; --i) {
    ATTN_EACH_VECTOR doubled_part[v] = hn::MulAdd(doubled_part[v], x[v], hn::Set(d, Constants::kCoefficients[i]));
  }
}

/// x ← 2^x for x ≤ 0.
template <int kVectors, class D, class V = hn::Vec<D>>
HWY_INLINE void Exp2Nonpositive(D d, V (&x)[kVectors]) {
  V doubled_part[kVectors], half_power[kVectors];
  SplitExp2(d, x, doubled_part, half_power);
  const V two = hn::Set(d, Exp2<hn::TFromD<D>>::kCoefficients[0]);
  ATTN_EACH_VECTOR x[v] = hn::MulAdd(doubled_part[v], x[v], two);
  ATTN_EACH_VECTOR x[v] = hn::Mul(x[v], half_power[v]);
}

#undef ATTN_EACH_VECTOR

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp2Nonpositive(D d, V x) {
  V one[1] = {x};
  Exp2Nonpositive(d, one);
  return one[0];
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V z) {
  using T = hn::TFromD<D>;
  const V two = hn::Set(d, T(2));
  V x[1] = {hn::Mul(hn::Set(d, static_cast<T>(-2 * kLog2E)), hn::Abs(z))};
  V doubled_part[1], half_power[1];
  SplitExp2(d, x, doubled_part, half_power);
  const V power_minus_one = hn::MulAdd(two, half_power[0], hn::Set(d, T(-1)));
  const V e = hn::MulAdd(hn::Mul(doubled_part[0], x[0]), half_power[0], power_minus_one);
  return hn::CopySign(hn::Div(e, hn::Add(two, e)), z);
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

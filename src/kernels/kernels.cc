// Compiles the kernels for every target (this file includes itself once for each) and hands out their tables.
#include "src/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target goes before highway.
#include "hwy/highway.h"
#include "src/kernels/block-inl.h"
#include "src/kernels/pack-inl.h"
#include "src/kernels/peak-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {

template <class T>
void Exp2Each(T* values, std::int64_t count) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < count; ++i) values[i] = hn::GetLane(Exp2Nonpositive(d, hn::Set(d, values[i])));
}

template <class T>
void TanhEach(T* values, std::int64_t count) {
  const hn::ScalableTag<T> d;
  for (std::int64_t i = 0; i < count; ++i) values[i] = hn::GetLane(Tanh(d, hn::Set(d, values[i])));
}

template <class T>
constexpr KernelSet<T> MakeKernelSet() {
  return {kPanelColumns<T>, AttendBlock<T>,  ScoreBlock<T>,  MergeStates<T>, DivideColumns<T>,
          PackKeys<T>,      PackValues<T>,   PackQueries<T>, Weigh<T>,       Exp2Each<T>,
          TanhEach<T>,      MultiplyAdds<T>, ReadAll<T>};
}

const Kernels* Table() {
  static constexpr Kernels kKernels{MakeKernelSet<float>(), MakeKernelSet<double>()};
  return &kKernels;
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {

HWY_EXPORT(Table);

namespace {

std::int64_t target_of(Isa isa) {
  switch (isa) {
    case Isa::scalar: return 0;
#if HWY_ARCH_X86
    case Isa::sse4: return HWY_SSE4;
    case Isa::avx2: return HWY_AVX2;
    case Isa::avx512: return HWY_AVX3;
#elif HWY_ARCH_ARM
    case Isa::neon: return HWY_NEON;
#endif
    default: return 0;
  }
}

}  // namespace

const Kernels* kernels_for(Isa isa) {
  // Asking the processor takes hundreds of cycles (a trap on virtual machines): once.
  static const std::int64_t supported = hwy::SupportedTargets() & (HWY_TARGETS);
  const std::int64_t target = target_of(isa) & supported;
  if (target == 0) return nullptr;
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(Table)[chosen.GetIndex()]();
}

}  // namespace attn
#endif  // HWY_ONCE

// Compiles the kernels for every target (this file includes itself once for each) and hands out their tables.
#include "src/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target goes before highway.
#include "hwy/highway.h"
#include "src/kernels/bf16-inl.h"
#include "src/kernels/block-inl.h"
#include "src/kernels/pack-inl.h"
#include "src/kernels/peak-inl.h"
#include "src/kernels/unpack-inl.h"

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
  return {.panel_columns = kPanelColumns<T>,
          .strip_rows = kStripRows,
          .dim_step = 1,
          .key_step = kUnitKeys,
          .reads_in_place = true,
          .attend_block = AttendBlock<T>,
          .score_block = ScoreBlock<T>,
          .merge = MergeStates<T>,
          .divide_row = DivideColumns<T>,
          .pack_keys = PackKeys<T>,
          .pack_values = PackValues<T>,
          .unpack_keys = nullptr,
          .unpack_values = nullptr,
          .pack_queries = PackQueries<T>,
          .hide_masked = HideMasked<T>,
          .weigh = Weigh<T>,
          .exp2_each = Exp2Each<T>,
          .tanh_each = TanhEach<T>,
          .multiply_adds = MultiplyAdds<T>,
          .read_all = ReadAll<T>};
}

KernelSet<float> MakeF32KernelSet() {
  KernelSet<float> kernels = MakeKernelSet<float>();
  kernels.unpack_keys = UnpackKeys;
  kernels.unpack_values = UnpackValues;
  return kernels;
}

// f32 but for the products.
KernelSet<float> MakeBf16KernelSet() {
  KernelSet<float> kernels = MakeF32KernelSet();
#if HWY_TARGET == HWY_AVX3
  kernels.strip_rows = bf16::kRows;
  kernels.dim_step = kernels.key_step = static_cast<int>(bf16::kStep);
  kernels.reads_in_place = false;
  const bool matrix = bf16_products_here() == Bf16Products::matrix;
  kernels.attend_block = matrix ? bf16::AttendBlock<bf16::MatrixProducts> : bf16::AttendBlock<bf16::DotProducts>;
  kernels.score_block = nullptr;
  kernels.pack_keys = bf16::PackKeys;
  kernels.pack_values = bf16::PackValues;
  kernels.unpack_keys = bf16::UnpackKeys;
  kernels.unpack_values = bf16::UnpackValues;
  kernels.pack_queries = bf16::PackQueries;
#endif
  return kernels;
}

const Kernels* Table() {
  static const Kernels kKernels{MakeF32KernelSet(), MakeKernelSet<double>(), MakeBf16KernelSet(),
                                HWY_TARGET == HWY_AVX3 && bf16_products_here() != Bf16Products::none};
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

// The micro-kernel: C[rows × columns] = Σ over steps of A[rows][step]·B[step][columns], each sum one chain of fused
// multiply-adds in ascending order of steps. It serves both products: q·k (steps are d, columns are keys) and
// weights·v (steps are keys, columns are value columns). Lanes lie across columns, so that the number of rows and
// vectors in flight never shows in the result.

#if defined(ATTN_KERNELS_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_MULTIPLY_INL_H_
#undef ATTN_KERNELS_MULTIPLY_INL_H_
#else
#define ATTN_KERNELS_MULTIPLY_INL_H_
#endif

#include "hwy/highway.h"
#include "src/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors side by side in a panel of B: with kRowGroup rows, 24 accumulators of 32 registers or 12 of 16.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kPanelVectors = 4;
#else
inline constexpr int kPanelVectors = 2;
#endif

template <class T>
inline constexpr int kLanes = static_cast<int>(HWY_LANES(T));

/// Columns of a panel.
template <class T>
inline constexpr int kPanelColumns = kPanelVectors* kLanes<T>;

/// A of a product, strides in elements.
template <class T>
struct Factors {
  const T* a;
  std::int64_t row;
  std::int64_t step;
};

/// Where vector v of a panel starts.
template <class T>
HWY_INLINE std::int64_t VectorOffset(int v, std::int64_t unit_stride) {
  const int column = v * kLanes<T>;
  return column / static_cast<int>(kUnitKeys) * unit_stride + column % static_cast<int>(kUnitKeys);
}

/// Sums from +0 on.
template <int kRows, int kVectors, class D>
HWY_INLINE void ClearSums(D d, hn::Vec<D> (&sums)[kRows][kVectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
}

/// B of a product as numbers T, strides in elements. Columns lie in units of kUnitKeys: `unit` from one to the next
/// (kUnitKeys where columns are contiguous).
template <class T>
struct Columns {
  static constexpr int kStepsTogether = 1;
  const T* at;
  std::int64_t step;
  std::int64_t unit;

  /// Vector v of the step that is kStep behind the current one.
  template <int kStep, class D>
  HWY_INLINE hn::Vec<D> Load(D d, int v) const {
    static_assert(kStep == 0);
    return hn::LoadU(d, at + VectorOffset<T>(v, unit));
  }
  /// kStepsTogether steps on.
  HWY_INLINE void Advance() { at += step; }
};

template <int kRows, int kVectors, int kStep, class D, class B, class T = hn::TFromD<D>>
HWY_INLINE void MultiplyStep(D d, const T* HWY_RESTRICT a, std::int64_t a_row, const B& columns,
                             hn::Vec<D> (&sums)[kRows][kVectors]) {
  if constexpr (kVectors > kPanelVectors) {  // few rows: their factors stay in registers, and columns pass by
    hn::Vec<D> factors[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) factors[r] = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const hn::Vec<D> loaded = columns.template Load<kStep>(d, v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::MulAdd(factors[r], loaded, sums[r][v]);
    }
  } else {
    hn::Vec<D> loaded[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) loaded[v] = columns.template Load<kStep>(d, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const hn::Vec<D> factor = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, loaded[v], sums[r][v]);
    }
  }
}

/// Adds all steps to the sums.
template <int kRows, int kVectors, class D, class B, class T = hn::TFromD<D>>
HWY_INLINE void Multiply(D d, const Factors<T>& factors, B columns, std::int64_t steps,
                         hn::Vec<D> (&sums)[kRows][kVectors]) {
  constexpr int kTogether = B::kStepsTogether;
  const T* HWY_RESTRICT a = factors.a;
  std::int64_t step = 0;
#pragma GCC unroll 4
  for (; step + kTogether <= steps; step += kTogether) {
    MultiplyStep<kRows, kVectors, 0>(d, a, factors.row, columns, sums);
    if constexpr (kTogether == 2) MultiplyStep<kRows, kVectors, 1>(d, a + factors.step, factors.row, columns, sums);
    a += kTogether * factors.step;
    columns.Advance();
  }
  if constexpr (kTogether == 2) {
    if (step < steps) MultiplyStep<kRows, kVectors, 0>(d, a, factors.row, columns, sums);
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

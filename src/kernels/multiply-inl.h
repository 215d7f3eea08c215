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

/// A and B of a product, strides in elements. B's columns lie in units of kUnitKeys: `unit_stride` from one to the
/// next (kUnitKeys where columns are contiguous).
template <class T>
struct Operands {
  const T* a;
  std::int64_t a_row;
  std::int64_t a_step;
  const T* b;
  std::int64_t b_step;
  std::int64_t b_unit;
  std::int64_t steps;
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

/// Adds all steps to the sums.
template <int kRows, int kVectors, class D, class T = hn::TFromD<D>>
HWY_INLINE void Multiply(D d, const Operands<T>& operands, hn::Vec<D> (&sums)[kRows][kVectors]) {
  const T* HWY_RESTRICT a = operands.a;
  const T* HWY_RESTRICT b = operands.b;
  const std::int64_t a_row = operands.a_row, b_unit = operands.b_unit;
#pragma GCC unroll 4
  for (std::int64_t step = 0; step < operands.steps; ++step) {
    hn::Vec<D> columns[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::LoadU(d, b + VectorOffset<T>(v, b_unit));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const hn::Vec<D> factor = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
    a += operands.a_step;
    b += operands.b_step;
  }
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

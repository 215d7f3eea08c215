// Compiles the products for every target (this file includes itself once for each) and hands out their tables.
#include "model/kernels.h"

#include <algorithm>
#include <cmath>

#include "attn/dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// foreach_target goes before highway.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "model/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::model::HWY_NAMESPACE {

// Rows that go through the registers together, and vectors of each: 24 sums of 32 registers, or 12 of 16.
constexpr int kRowsTogether = 6;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif

template <int kRows>
void MultiplyRows(const float* HWY_RESTRICT numbers, std::int64_t inputs, const float* HWY_RESTRICT x,
                  std::int64_t stride, float* HWY_RESTRICT sums) {
  const F32 d;
  for (int first = 0; first < kPanelOutputs; first += kVectors * kLanes) {
    hn::Vec<F32> sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    const float* HWY_RESTRICT from = numbers + first;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < inputs; ++k, from += kPanelOutputs) {
      hn::Vec<F32> weights[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weights[v] = hn::Load(d, from + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const hn::Vec<F32> factor = hn::Set(d, x[r * stride + k]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, weights[v], sum[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, sums + r * kPanelOutputs + first + v * kLanes);
    }
  }
}

void Multiply(const float* numbers, std::int64_t inputs, const float* x, std::int64_t stride, std::int64_t rows,
              float* sums) {
  std::int64_t row = 0;
  for (; row + kRowsTogether <= rows; row += kRowsTogether)
    MultiplyRows<kRowsTogether>(numbers, inputs, x + row * stride, stride, sums + row * kPanelOutputs);
  const float* rest = x + row * stride;
  float* to = sums + row * kPanelOutputs;
  switch (rows - row) {
    case 1: return MultiplyRows<1>(numbers, inputs, rest, stride, to);
    case 2: return MultiplyRows<2>(numbers, inputs, rest, stride, to);
    case 3: return MultiplyRows<3>(numbers, inputs, rest, stride, to);
    case 4: return MultiplyRows<4>(numbers, inputs, rest, stride, to);
    case 5: return MultiplyRows<5>(numbers, inputs, rest, stride, to);
    default: return;
  }
}

template <class Panel, int kRows>
void MultiplyPanel(const Matrix& matrix, std::int64_t panel, const float* HWY_RESTRICT x, std::int64_t stride,
                   float* HWY_RESTRICT sums) {
  const F32 d;
  // As many sums as hide the latency of a chain, if registers allow.
  constexpr int kTogether = std::min<int>(kPanelOutputs / kLanes, kRows == 1 ? 4 : kVectors);
  for (int first = 0; first < kPanelOutputs; first += kTogether * kLanes) {
    hn::Vec<F32> sum[kRows][kTogether];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kTogether; ++v) sum[r][v] = hn::Zero(d);
    }
    Panel from(matrix, panel, first);
    for (std::int64_t k = 0; k < matrix.inputs();) {
      hn::Vec<F32> steps[kTogether], leasts[kTogether];
      from.BeginGroup(steps, leasts);
      for (std::int64_t end = std::min(matrix.inputs(), k + matrix.group()); k < end; k += Panel::kInputsTogether) {
        hn::Vec<F32> weights[Panel::kInputsTogether][kTogether];
        from.Load(steps, leasts, weights);
#pragma GCC unroll 2
        for (int i = 0; i < Panel::kInputsTogether; ++i) {
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            const hn::Vec<F32> factor = hn::Set(d, x[r * stride + k + i]);
#pragma GCC unroll 8
            for (int v = 0; v < kTogether; ++v) sum[r][v] = hn::MulAdd(factor, weights[i][v], sum[r][v]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kTogether; ++v) hn::Store(sum[r][v], d, sums + r * kPanelOutputs + first + v * kLanes);
    }
  }
}

template <class Panel>
void MultiplyFewOf(const Matrix& matrix, std::int64_t panel, const float* x, std::int64_t stride, std::int64_t rows,
                   float* sums) {
  switch (rows) {
    case 1: return MultiplyPanel<Panel, 1>(matrix, panel, x, stride, sums);
    case 2: return MultiplyPanel<Panel, 2>(matrix, panel, x, stride, sums);
    case 3: return MultiplyPanel<Panel, 3>(matrix, panel, x, stride, sums);
    case 4: return MultiplyPanel<Panel, 4>(matrix, panel, x, stride, sums);
    default: return;
  }
}

void MultiplyFew(const Matrix& matrix, std::int64_t panel, const float* x, std::int64_t stride, std::int64_t rows,
                 float* sums) {
  switch (matrix.form()) {
    case WeightForm::f32: return MultiplyFewOf<PlainPanel>(matrix, panel, x, stride, rows, sums);
    case WeightForm::bf16: return MultiplyFewOf<Bf16Panel>(matrix, panel, x, stride, rows, sums);
    case WeightForm::eight_bits: return MultiplyFewOf<EightBitPanel>(matrix, panel, x, stride, rows, sums);
    case WeightForm::four_bits: return MultiplyFewOf<FourBitPanel>(matrix, panel, x, stride, rows, sums);
  }
}

template <class Panel>
void UnpackOf(const Matrix& matrix, std::int64_t panel, float* HWY_RESTRICT numbers) {
  const F32 d;
  constexpr int kTogether = std::min<int>(kPanelOutputs / kLanes, 4);
  for (int first = 0; first < kPanelOutputs; first += kTogether * kLanes) {
    Panel from(matrix, panel, first);
    for (std::int64_t k = 0; k < matrix.inputs();) {
      hn::Vec<F32> steps[kTogether], leasts[kTogether];
      from.BeginGroup(steps, leasts);
      for (std::int64_t end = std::min(matrix.inputs(), k + matrix.group()); k < end; k += Panel::kInputsTogether) {
        hn::Vec<F32> weights[Panel::kInputsTogether][kTogether];
        from.Load(steps, leasts, weights);
        for (int i = 0; i < Panel::kInputsTogether; ++i) {
          for (int v = 0; v < kTogether; ++v)
            hn::Store(weights[i][v], d, numbers + (k + i) * kPanelOutputs + first + v * kLanes);
        }
      }
    }
  }
}

void Unpack(const Matrix& matrix, std::int64_t panel, float* numbers) {
  switch (matrix.form()) {
    case WeightForm::f32: return UnpackOf<PlainPanel>(matrix, panel, numbers);
    case WeightForm::bf16: return UnpackOf<Bf16Panel>(matrix, panel, numbers);
    case WeightForm::eight_bits: return UnpackOf<EightBitPanel>(matrix, panel, numbers);
    case WeightForm::four_bits: return UnpackOf<FourBitPanel>(matrix, panel, numbers);
  }
}

// Below −88 e^−x is beyond what Highway's Exp is made for, and the result is 0 within 1e-36.
HWY_INLINE hn::Vec<F32> Silu(F32 d, hn::Vec<F32> x) {
  const auto result = hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Exp(d, hn::Neg(x))));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -88.0F)), hn::Zero(d), result);
}

void SiluProduct(float* HWY_RESTRICT gate, const float* HWY_RESTRICT up, std::int64_t count) {
  const F32 d;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::Mul(Silu(d, hn::LoadU(d, gate + i)), hn::LoadU(d, up + i)), d, gate + i);
  for (; i < count; ++i) gate[i] = hn::GetLane(Silu(d, hn::Set(d, gate[i]))) * up[i];
}

const Kernels* Table() {
  static const Kernels kKernels{MultiplyFew, Unpack, Multiply, SiluProduct};
  return &kKernels;
}

}  // namespace attn::model::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn::model {

HWY_EXPORT(Table);

namespace {

float weight(const Matrix& matrix, const std::byte* panel, std::int64_t k, std::int64_t o) {
  const auto number = [&](std::int64_t at) { return reinterpret_cast<const float*>(panel)[at]; };
  if (matrix.form() == WeightForm::f32) return number(k * kPanelOutputs + o);
  if (matrix.form() == WeightForm::bf16)
    return bf16_to_float(reinterpret_cast<const std::uint16_t*>(panel)[k * kPanelOutputs + o]);
  const std::int64_t group = matrix.group(), i = k % group;
  panel += k / group * (matrix.panel_bytes() / (matrix.inputs() / group));
  const std::byte* codes = panel + kPanelOutputs * 4;
  if (matrix.form() == WeightForm::eight_bits)
    return number(o) * static_cast<float>(static_cast<std::int8_t>(codes[i * kPanelOutputs + o]));
  const std::byte two = codes[kPanelOutputs * 4 + i / 2 * kPanelOutputs + o];
  const float code = static_cast<float>(i % 2 ? two >> 4 : two & std::byte{15});
  return std::fma(number(o), code, number(kPanelOutputs + o));
}

void unpack_plainly(const Matrix& matrix, std::int64_t panel, float* numbers) {
  for (std::int64_t k = 0; k < matrix.inputs(); ++k) {
    for (std::int64_t o = 0; o < kPanelOutputs; ++o)
      numbers[k * kPanelOutputs + o] = weight(matrix, matrix.panel(panel), k, o);
  }
}

void multiply_plainly(const float* numbers, std::int64_t inputs, const float* x, std::int64_t stride,
                      std::int64_t rows, float* sums) {
  std::fill(sums, sums + rows * kPanelOutputs, 0.0F);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < inputs; ++k) {
      for (std::int64_t o = 0; o < kPanelOutputs; ++o) {
        float& sum = sums[r * kPanelOutputs + o];
        sum = std::fma(x[r * stride + k], numbers[k * kPanelOutputs + o], sum);
      }
    }
  }
}

void silu_product_plainly(float* gate, const float* up, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

std::int64_t target_of(Isa isa) {
  switch (isa) {
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

const Kernels& kernels() {
  static const Kernels kPlain{nullptr, unpack_plainly, multiply_plainly, silu_product_plainly};
  const std::int64_t target = target_of(current_isa());
  if (target == 0) return kPlain;
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return *HWY_DISPATCH_TABLE(Table)[chosen.GetIndex()]();
}

}  // namespace attn::model
#endif  // HWY_ONCE

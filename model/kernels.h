// What a SIMD target offers to the products of a model: one body of code for all targets, plain functions outside.
#pragma once

#include <cstdint>

#include "attn/isa.h"
#include "model/matrix.h"

namespace attn::model {

/// Rows whose products read a panel as it lies; more of them unpack it first.
inline constexpr std::int64_t kFewRows = 4;

/// Every sum is one chain of fused multiply-adds from +0 over ascending inputs, so its bits depend on neither rows nor target
/// (SSE4 has no fused multiply-add, and bits of its own; scalar's silu_product takes the C library's exponential). `x` are rows of matrix.inputs() numbers, `stride` apart;
/// `sums` are [rows][kPanelOutputs].
struct Kernels {
  /// For up to kFewRows rows, from the panel as it lies; nullptr: unpack first.
  void (*multiply_few)(const Matrix& matrix, std::int64_t panel, const float* x, std::int64_t stride,
                       std::int64_t rows, float* sums);
  /// The panel as numbers: [inputs][kPanelOutputs].
  void (*unpack)(const Matrix& matrix, std::int64_t panel, float* numbers);
  /// For any number of rows, from an unpacked panel. Panels and sums are aligned to 64 bytes.
  void (*multiply)(const float* numbers, std::int64_t inputs, const float* x, std::int64_t stride,
                   std::int64_t rows, float* sums);
  /// gate[i] = gate[i] / (1 + e^−gate[i]) · up[i].
  void (*silu_product)(float* gate, const float* up, std::int64_t count);
};

/// Those of the current target; the plain C++ ones where it is scalar.
const Kernels& kernels();

}  // namespace attn::model

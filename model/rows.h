// What a model does to rows between its products. Each row alone, so that its bits never depend on the others.
#pragma once

#include <cstdint>

#include "attn/executor.h"

namespace attn::model {

/// to = x / sqrt(mean of x² + epsilon) · weight, for each of `rows` rows of `width` numbers. Source: RMSNorm (Zhang and
/// Sennrich, 2019).
void rms_norm(const float* x, std::int64_t rows, std::int64_t width, const float* weight, float epsilon, float* to,
              Executor& executor);

/// x = (x − mean) / sqrt(variance + epsilon) · weight + bias, in place. Source: Layer Normalization (Ba et al., 2016).
void layer_norm(float* x, std::int64_t rows, std::int64_t width, const float* weight, const float* bias,
                float epsilon, Executor& executor);

/// gate = gate · sigmoid(gate) · up, for all `count` numbers: the middle of SwiGLU. Source: Shazeer, 2020.
void silu_product(float* gate, const float* up, std::int64_t count, Executor& executor);

/// x = x · Φ(x), Φ the normal distribution's: the exact GELU. Source: Hendrycks and Gimpel, 2016.
void gelu(float* x, std::int64_t count, Executor& executor);

}  // namespace attn::model

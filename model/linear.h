// y = x·Wᵀ for rows of x.
#pragma once

#include <cstdint>
#include <span>

#include "attn/executor.h"
#include "attn/status.h"
#include "model/matrix.h"

namespace attn::model {

/// What happens to the sums of a product.
enum class Into : std::uint8_t {
  store,  ///< y = sum (+ bias)
  add,    ///< y = y + (sum + bias): what a residual connection does
};

/// One of the products that read the same rows.
struct Product {
  const Matrix* matrix;
  float* out;                   ///< [rows][matrix->outputs()]
  std::int64_t stride;          ///< from one row of `out` to the next
  const float* bias = nullptr;  ///< [outputs]
  Into into = Into::store;
};

/// All products of `rows` rows of x ([rows][inputs], `stride` apart). The bits of a row of `out` depend on its row of x
/// alone: each sum is one chain of fused multiply-adds in ascending order of inputs, whatever the number of rows, the
/// threads or the target (but SSE4). Time O(rows · outputs · inputs); scratch of 64 · inputs numbers a thread,
/// kept by the thread. Errors: memory that can't be had.
/// A BLAS would be no slower and keep none of that.
Status multiply(const float* x, std::int64_t rows, std::int64_t stride, std::span<const Product> products,
                Executor& executor);

}  // namespace attn::model

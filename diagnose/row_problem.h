// One row of a problem as a problem of its own: what the judge is asked about where all rows would take too long.
#pragma once

#include <cstdint>

#include "attn/options.h"
#include "attn/tensor.h"
#include "reference/inputs.h"

namespace attn::diagnose {

/// Views into the whole problem's tensors; valid as long as those and this object.
struct RowProblem {
  TensorView q, k, v;  ///< [1, 1, 1, Dk], [1, 1, M, Dk], [1, 1, M, Dv]
  AttentionOptions options;
  std::int64_t key_length = 0;
};

/// Row i of a query head of a sequence. `sequence` is that of the whole problem.
void make_row_problem(const TensorView& q, const TensorView& k, const TensorView& v,
                      const AttentionOptions& options, const reference::Sequence& sequence, std::int64_t head,
                      std::int64_t i, RowProblem* row);

}  // namespace attn::diagnose

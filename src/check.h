// Every rule about the shapes, dtypes, strides and options of inputs: one place. (Outputs: check_outputs.h.)
#pragma once

#include "attn/attention.h"
#include "src/problem.h"

namespace attn {

/// Which tensors a call has: weights() has no v, and attention over a cache has the cache instead of k and v.
struct Inputs {
  const TensorView& q;
  const TensorView* k;
  const TensorView* v;
  const CachedKeys* cached = nullptr;
};

/// Checks inputs and options and normalises them into `problem`.
Status check_problem(const Inputs& inputs, const AttentionOptions& options, Problem* problem);

/// Refuses a row that would see, by its intervals, a token which its cached sequence has dropped. O(rows): to be called once
/// the outputs are known to have memory for them.
Status check_dropped(const Problem& problem);

}  // namespace attn

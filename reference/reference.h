// Exact attention the plain way: every score, one softmax a row, one weighted sum, all in float64.
//
// This is the judge. It is slow, O(B·Hq·N·M·(Dk + Dv)), and meant to be read beside the formula. It knows every
// option of attn/options.h. Inputs are taken to be valid: plan() says whether they are.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/options.h"
#include "attn/tensor.h"

namespace attn::reference {

/// What attention gives. Shapes follow q's own layout: with packed sequences `batch` is 1 and `queries` are all
/// rows of q, those that belong to no sequence (0 in `out`, −∞ in `lse`) included.
struct Result {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t queries = 0;
  std::int64_t value_dim = 0;
  std::int64_t keys = 0;        ///< columns of `weights`: M, or the longest sequence's where packed
  std::vector<double> out;      ///< [batch, heads, queries, value_dim]
  std::vector<double> lse;      ///< [batch, heads, queries], natural logarithm, sinks included
  std::vector<double> weights;  ///< [batch, heads, queries, keys] on request, otherwise empty
};

/// softmax(q·kᵀ·scale + masks)·v in float64, whatever the dtypes and strides.
///
/// Shapes as for forward(). A row without a visible key gives out = 0 and lse = −∞ or its sink logit; so does a
/// row whose every visible score is −∞. A visible NaN score makes its row NaN. Hidden keys and values are never
/// read into a result; visible values always are, even with a weight of 0 (0·NaN is NaN).
Result attention(const TensorView& q, const TensorView& k, const TensorView& v,
                 const AttentionOptions& options = {}, bool keep_weights = false);

}  // namespace attn::reference

// How far from the float64 reference a right answer may be: one bound, shared by the tests and by whoever judges
// an implementation.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/dtype.h"
#include "attn/options.h"
#include "attn/tensor.h"
#include "reference/reference.h"

namespace attn::reference {

/// The largest error allowed, for each element of a Result.
struct Bounds {
  std::vector<double> out;  ///< [batch, heads, queries, value_dim]
  std::vector<double> lse;  ///< [batch, heads, queries]
};

/// How an engine adds up.
enum class SumOrder : std::uint8_t {
  ours,  ///< as attn/numerics.h says
  any,   ///< in one chain of M keys, or in tiles of 16 and more
};

/// The bound for an engine that computes in `compute` (f32 or f64) and stores `out` as `stored`, lse as `compute`.
///
/// With u the unit roundoff of `compute` (2⁻²⁴, 2⁻⁵³), out the exact output, w the weights, and sums over the
/// visible keys j, an element of `out` may be wrong by
///
///     u·( c₁ · max_j scale·Σ_d|q_d k_jd| · Σ w_j|v_j − out|
///       + c₃ · Σ w_j b_j |v_j − out|
///       + c₂ · Σ w_j|v_j| )                        + the rounding of the stored element
///
/// where b_j = |bias_j| + |ALiBi_j| + softcap + |score_j − max|, what scores carry beside the product. Constants
/// cover the worst case of the order of arithmetic in attn/numerics.h, so that an engine that keeps to it is never
/// called wrong; bound.cc derives them. They hold for large scores too, where "small relative error of a weight" is
/// no longer true: there δ stands for (e^δ − 1)/e^−δ. Not covered: scores, products or outputs beyond the largest
/// number of their type. Elements whose reference is ±∞ or NaN get bound 0: they must be met exactly (see
/// agrees()).
///
/// `expected` is attention() of the same inputs. O(B·Hq·N·M·(Dk + Dv)).
Bounds error_bounds(const Result& expected, const TensorView& q, const TensorView& k, const TensorView& v,
                    const AttentionOptions& options, DType compute, DType stored, SumOrder order = SumOrder::ours);

/// Whether `actual` is `expected` within `bound`: NaN agrees with NaN alone, an infinity with itself alone.
bool agrees(double actual, double expected, double bound);

}  // namespace attn::reference

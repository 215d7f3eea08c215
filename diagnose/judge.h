// Which rows of theirs are right, for arithmetic of some precision.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "attn/diagnose.h"
#include "diagnose/comparison.h"
#include "reference/inputs.h"

namespace attn::diagnose {

/// A problem and theirs, as they were given.
struct Given {
  const TensorView &q, &k, &v, &theirs;
  const AttentionOptions& options;
  std::optional<double> tolerance;
};

/// What the judged rows say, if theirs was computed in `arithmetic`.
struct Judgement {
  DType arithmetic = DType::f32;
  std::set<std::int64_t> wrong;                 ///< rows with an element beyond its bound
  double max_error = 0, bound = 0, excess = 0;  ///< of the element furthest beyond its bound, or nearest to it
  OutPlace where;
  double largest_right = 0;  ///< the largest difference in a row that is right
  bool right() const { return wrong.empty(); }
};

/// Judges rows by the float64 reference, and elements by the bound of reference/bound.h for sums in any order. For f16 and bf16
/// the bound is that of f32 sums of scores and weights that are rounded to 16 bits; and theirs, taken as a whole, must be
/// ours but for such roundings: a bound that is as wide as the numbers themselves proves nothing.
Judgement judge(const Given& given, const reference::Inputs& inputs, const Comparison& comparison,
                const std::vector<std::int64_t>& rows, DType arithmetic, DType stored);

/// The type that all numbers of theirs fit into, as where bf16 was saved as f32: f16, bf16, or else their own.
DType stored_type_of(const TensorView& view);

double roundoff_of(DType dtype);

}  // namespace attn::diagnose

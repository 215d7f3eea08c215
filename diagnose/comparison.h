// Every row of theirs beside float64 attention, and the rows that decide.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/diagnose.h"
#include "reference/inputs.h"

namespace attn::diagnose {

/// A row of out.
struct RowPlace {
  std::int64_t batch = 0, head = 0, row = 0;
};

/// |a − b|; 0 where both are the same infinity or both NaN, infinite where one is NaN or infinite and the other is not that.
double difference_of(double a, double b);

/// Theirs and ours, read into float64.
class Comparison {
 public:
  /// Computes attention in float64 by the engine. `inputs` are those of q, k, v and options. Errors: those of forward().
  static Status make(const reference::Inputs& inputs, const TensorView& theirs, Comparison* comparison);

  const double* theirs(const RowPlace& place) const { return theirs_.row(place.batch, place.head, place.row); }
  const double* ours(const RowPlace& place) const;
  std::int64_t columns() const { return theirs_.shape[3]; }
  std::int64_t rows() const { return theirs_.shape[0] * theirs_.shape[1] * theirs_.shape[2]; }
  RowPlace place_of(std::int64_t row) const;

  /// The largest difference in a row; infinite where one is NaN or infinite and the other is not that.
  double difference(std::int64_t row) const { return differences_[static_cast<std::size_t>(row)]; }

  /// Up to `most` rows, those first in which a number differs most beside Σ weight·|value|, of which its rounding is a part: so
  /// small numbers that are wrong are found among large ones that are right.
  std::vector<std::int64_t> worst_rows(std::size_t most) const;

 private:
  reference::Array theirs_;
  std::vector<double> ours_;
  std::vector<double> differences_;
  std::vector<double> ratios_;  // each row's largest difference beside Σ weight·|value|
};

/// Which rows, heads and positions differ, in sentences. `differs` has an entry a row of out.
std::vector<std::string> describe_pattern(const reference::Inputs& inputs, const std::vector<bool>& differs,
                                          const std::vector<bool>& not_finite);

}  // namespace attn::diagnose

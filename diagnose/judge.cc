#include "diagnose/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnose/row_problem.h"
#include "reference/bound.h"
#include "reference/reference.h"
#include "reference/row.h"

namespace attn::diagnose {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

struct RowBounds {
  std::vector<double> expected, bounds;
};

// What rounding scores and weights to 16 bits may add to a row's bounds, in the terms of reference/bound.h: a score is rounded
// as a product and when it is finished, a weight twice.
void add_half_roundings(const RowProblem& problem, double roundoff, RowBounds* row) {
  const reference::Inputs inputs(problem.q, problem.k, problem.v, problem.options);
  const reference::Row worked = reference::attend(inputs, inputs.sequences.front(), 0, 0);
  std::vector<double> moved(row->expected.size(), 0.0), farthest = moved, summed = moved;
  for (std::size_t n = 0; n < worked.keys.size(); ++n) {
    const double* q = inputs.query.row(0, 0, 0);
    const double* k = inputs.key.row(0, 0, worked.keys[n]);
    double product = 0;
    for (std::int64_t d = 0; d < inputs.query.shape[3]; ++d) product += q[d] * k[d];
    const double size = std::fmax(std::fabs(product * inputs.scale), std::fabs(worked.scores[n]));
    const double off = worked.weights[n] * std::expm1(std::min(roundoff * (2 * size + 2), 50.0));
    const double* v = inputs.value.row(0, 0, worked.keys[n]);
    for (std::size_t c = 0; c < moved.size(); ++c) {
      const double away = std::fabs(v[c] - row->expected[c]);
      moved[c] += off * away;
      farthest[c] = std::fmax(farthest[c], away);
      summed[c] += 2 * roundoff * worked.weights[n] * std::fabs(v[c]);
    }
  }
  // However wrong the weights, an average stays among what it averages.
  for (std::size_t c = 0; c < moved.size(); ++c) row->bounds[c] += std::fmin(moved[c], farthest[c]) + summed[c];
}

RowBounds bounds_of(const Given& given, const reference::Sequence& sequence, const RowPlace& place,
                    std::int64_t columns, DType arithmetic, DType stored) {
  RowBounds row{std::vector<double>(static_cast<std::size_t>(columns), 0.0), {}};
  row.bounds = row.expected;
  if (place.row < sequence.queries) {  // otherwise padding, which sees nothing
    RowProblem problem;
    make_row_problem(given.q, given.k, given.v, given.options, sequence, place.head, place.row, &problem);
    const reference::Result result = reference::attention(problem.q, problem.k, problem.v, problem.options);
    row.expected = result.out;
    row.bounds = reference::error_bounds(result, problem.q, problem.k, problem.v, problem.options,
                                         arithmetic == DType::f64 ? DType::f64 : DType::f32, stored,
                                         reference::SumOrder::any)
                     .out;
    if (is_half(arithmetic)) add_half_roundings(problem, roundoff_of(arithmetic), &row);
  }
  if (given.tolerance) row.bounds.assign(row.bounds.size(), *given.tolerance);
  return row;
}

// Theirs on ours: the slope of least squares, and how large errors are beside ours. Zeros, multiples and other heads' numbers keep
// to a wide bound, but not to this.
class Whole {
 public:
  void add(double theirs, double expected) {
    if (!std::isfinite(theirs) || !std::isfinite(expected)) return;
    both_ += theirs * expected;
    ours_ += expected * expected;
    errors_ += (theirs - expected) * (theirs - expected);
  }
  bool is_ours(double roundoff) const {
    if (ours_ == 0) return errors_ == 0;
    return std::fabs(both_ / ours_ - 1) <= 2 * roundoff && std::sqrt(errors_ / ours_) <= 16 * roundoff;
  }

 private:
  double both_ = 0, ours_ = 0, errors_ = 0;
};

}  // namespace

double roundoff_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

DType stored_type_of(const TensorView& view) {
  if (is_half(view.dtype)) return view.dtype;
  const reference::Array array = reference::read(view);
  bool f16 = true, bf16 = true, fraction = false;
  for (const double number : array.values) {
    const auto narrow = static_cast<float>(number);
    f16 = f16 && f16_to_float(float_to_f16(narrow)) == number;
    bf16 = bf16 && bf16_to_float(float_to_bf16(narrow)) == number;
    fraction = fraction || number != std::trunc(number);
  }
  // Whole numbers fit into everything and say nothing.
  if (!fraction) return view.dtype;
  return bf16 ? DType::bf16 : f16 ? DType::f16 : view.dtype;
}

Judgement judge(const Given& given, const reference::Inputs& inputs, const Comparison& comparison,
                const std::vector<std::int64_t>& rows, DType arithmetic, DType stored) {
  Judgement judgement;
  judgement.arithmetic = arithmetic;
  Whole whole;
  bool first = true;
  for (const std::int64_t index : rows) {
    const RowPlace place = comparison.place_of(index);
    const auto& sequence = inputs.sequences[static_cast<std::size_t>(place.batch)];
    const RowBounds row = bounds_of(given, sequence, place, comparison.columns(), arithmetic, stored);
    double excess_of_row = 0;
    for (std::size_t c = 0; c < row.bounds.size(); ++c) {
      const double theirs = comparison.theirs(place)[c], expected = row.expected[c];
      const bool right = reference::agrees(theirs, expected, row.bounds[c]);
      const bool same = theirs == expected || (right && std::isnan(expected));
      const double error = same ? 0 : std::fabs(theirs - expected);
      double excess = error == 0 ? 0 : error / row.bounds[c];
      if (!right) excess = std::isnan(error) ? kInfinity : std::fmax(excess, 1.0000001);
      excess_of_row = std::fmax(excess_of_row, excess);
      whole.add(theirs, expected);
      if (!first && excess <= judgement.excess) continue;
      first = false;
      judgement.excess = excess;
      judgement.max_error = error;
      judgement.bound = row.bounds[c];
      judgement.where = {place.batch, place.head, place.row, static_cast<std::int64_t>(c)};
    }
    if (excess_of_row > 1) {
      judgement.wrong.insert(index);
    } else {
      judgement.largest_right = std::max(judgement.largest_right, comparison.difference(index));
    }
  }
  if (is_half(arithmetic) && !whole.is_ours(roundoff_of(arithmetic)))
    judgement.wrong.insert(rows.begin(), rows.end());
  return judgement;
}

}  // namespace attn::diagnose

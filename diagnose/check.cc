// The verdict on an answer.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "attn/attention.h"
#include "attn/diagnose.h"
#include "diagnose/comparison.h"
#include "diagnose/explain_theirs.h"
#include "diagnose/row_problem.h"
#include "diagnose/side_answers.h"
#include "reference/bound.h"
#include "reference/reference.h"

namespace attn {
namespace {

using diagnose::Comparison;
using diagnose::Evidence;
using diagnose::RowPlace;

const diagnose::Recipe kRight;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows that the float64 reference judges: those with the largest differences, and some spread over the problem.
constexpr std::size_t kWorstRows = 32, kRelativelyWorstRows = 24, kSpreadRows = 24;

double roundoff_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

std::string text_of(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

Status check_arguments(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& theirs,
                       const AttentionOptions& options) {
  Plan none;
  ATTN_RETURN_IF_ERROR(plan(q, k, v, options, &none));
  if (!options.query_starts.empty())
    return Status::error("options: packed sequences are not checked in this version; give each as a batch entry");
  if (theirs.data == nullptr) return Status::error("theirs: the data pointer is null; give the answer to check");
  if (!is_float(theirs.dtype))
    return Status::error("theirs: dtype bool; an answer has f32, f64, f16 or bf16 numbers");
  if (theirs.rank != q.rank)
    return Status::error("theirs: " + std::to_string(theirs.rank) + " dimensions, but q has " +
                         std::to_string(q.rank) + "; an answer has as many");
  std::vector<std::int64_t> expected(q.shape.begin(), q.shape.begin() + q.rank);
  expected.back() = v.shape[static_cast<std::size_t>(v.rank - 1)];
  const std::vector<std::int64_t> given(theirs.shape.begin(), theirs.shape.begin() + theirs.rank);
  if (given == expected) return {};
  return Status::error("theirs: shape " + text_of(given) + ", but out is " + text_of(expected) +
                       "; give the whole answer");
}

// One check, step by step.
class Examination {
 public:
  Examination(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& theirs,
              const AttentionOptions& options, const CheckOptions& check_options)
      : q_(q),
        k_(k),
        v_(v),
        theirs_(theirs),
        options_(options),
        check_options_(check_options),
        inputs_(q, k, v, options),
        exact_(q.dtype == DType::f64 && theirs.dtype == DType::f64) {}

  Status run(Diagnosis* diagnosis) {
    ATTN_RETURN_IF_ERROR(Comparison::make(inputs_, theirs_, &comparison_));
    Diagnosis made;
    made.rows = comparison_.rows();
    if (made.rows > 0 && comparison_.columns() > 0) {
      judge(&made);
      explain(&made);
      for (std::string& sentence : diagnose::look_at_side_answers(inputs_, evidence_rows(), check_options_))
        made.patterns.push_back(std::move(sentence));
    }
    *diagnosis = std::move(made);
    return {};
  }

 private:
  // The bound of a row's elements, for arithmetic of a type.
  std::vector<double> bounds_of(const RowPlace& place, DType compute, std::vector<double>* expected) const {
    const auto& sequence = inputs_.sequences[static_cast<std::size_t>(place.batch)];
    if (place.row >= sequence.queries) {  // a row of padding: nothing is seen
      expected->assign(static_cast<std::size_t>(comparison_.columns()), 0);
      return *expected;
    }
    diagnose::RowProblem row;
    diagnose::make_row_problem(q_, k_, v_, options_, sequence, place.head, place.row, &row);
    const reference::Result result = reference::attention(row.q, row.k, row.v, row.options);
    *expected = result.out;
    std::vector<double> bounds = reference::error_bounds(result, row.q, row.k, row.v, row.options, compute,
                                                         theirs_.dtype, reference::SumOrder::any)
                                     .out;
    if (check_options_.tolerance) bounds.assign(bounds.size(), *check_options_.tolerance);
    return bounds;
  }

  // The element of a row that is furthest beyond its bound, or nearest to it.
  struct Worst {
    double excess = 0;  // at most 1 where the row is right
    double error = 0, bound = 0;
    OutPlace where;
  };

  Worst worst_of(std::int64_t index, DType compute) const {
    const RowPlace place = comparison_.place_of(index);
    std::vector<double> expected;
    const std::vector<double> bounds = bounds_of(place, compute, &expected);
    Worst worst;
    for (std::size_t c = 0; c < bounds.size(); ++c) {
      const double theirs = comparison_.theirs(place)[c];
      const bool right = reference::agrees(theirs, expected[c], bounds[c]);
      const bool same = theirs == expected[c] || std::isnan(expected[c]);
      const double error = right && same ? 0 : std::fabs(theirs - expected[c]);
      double excess = error == 0 ? 0 : error / bounds[c];
      if (!right) excess = std::isnan(error) ? kInfinity : std::fmax(excess, 1.0000001);
      if (c > 0 && excess <= worst.excess) continue;
      worst = {excess, error, bounds[c], {place.batch, place.head, place.row, static_cast<std::int64_t>(c)}};
    }
    return worst;
  }

  std::vector<std::int64_t> judged_rows() const {
    std::vector<std::int64_t> rows = comparison_.worst_rows(kWorstRows);
    std::set<std::int64_t> seen(rows.begin(), rows.end());
    for (const std::int64_t row : comparison_.relatively_worst_rows(kRelativelyWorstRows)) {
      if (seen.insert(row).second) rows.push_back(row);
    }
    const std::int64_t total = comparison_.rows();
    for (std::size_t n = 0; n < kSpreadRows; ++n) {
      const std::int64_t row =
          static_cast<std::int64_t>(n) * (total - 1) / static_cast<std::int64_t>(kSpreadRows - 1);
      if (seen.insert(row).second) rows.push_back(row);
    }
    return rows;
  }

  void judge(Diagnosis* made) {
    const DType compute = exact_ ? DType::f64 : DType::f32;
    double largest_right = 0;  // what a right row may differ by: rows that were not judged are held against that
    Worst worst;
    std::set<std::int64_t> wrong;
    const std::vector<std::int64_t> rows = judged_rows();
    for (const std::int64_t row : rows) {
      const Worst here = worst_of(row, compute);
      if (row == rows.front() || here.excess > worst.excess) worst = here;
      if (here.excess > 1) {
        wrong.insert(row);
      } else {
        largest_right = std::max(largest_right, comparison_.difference(row));
      }
    }
    made->precision = exact_ ? "f64" : "f32";
    made->max_error = worst.error;
    made->bound = worst.bound;
    made->where = worst.where;
    made->verdict = wrong.empty() ? Verdict::right : Verdict::unexplained;
    if (!wrong.empty()) describe(wrong, rows, std::max(largest_right, made->bound), made);
  }

  void describe(const std::set<std::int64_t>& wrong, const std::vector<std::int64_t>& rows, double allowed,
                Diagnosis* made) const {
    const std::set<std::int64_t> judged(rows.begin(), rows.end());
    std::vector<bool> differs, not_finite;
    for (std::int64_t row = 0; row < comparison_.rows(); ++row) {
      const double difference = comparison_.difference(row);
      differs.push_back(judged.contains(row) ? wrong.contains(row) : difference > allowed);
      not_finite.push_back(difference == kInfinity);
      made->rows_differing += differs.back();
    }
    made->patterns = diagnose::describe_pattern(inputs_, differs, not_finite);
  }

  // The most telling rows first: the worst, then rows of several heads and positions, wrong and right ones.
  std::vector<RowPlace> evidence_rows() const {
    std::vector<RowPlace> rows;
    std::set<std::int64_t> seen;
    const auto add = [&](std::int64_t index) {
      const RowPlace place = comparison_.place_of(index);
      if (place.row < inputs_.sequences[static_cast<std::size_t>(place.batch)].queries && seen.insert(index).second)
        rows.push_back(place);
    };
    for (const std::int64_t row : comparison_.worst_rows(3)) add(row);
    const auto [batch, heads, n, columns] = inputs_.query.shape;
    for (const std::int64_t b : {std::int64_t{0}, batch - 1, batch / 2}) {
      for (const std::int64_t h : {std::int64_t{0}, heads - 1, heads / 2}) {
        for (const std::int64_t i : {n - 1, n / 2, std::int64_t{0}, n / 3, std::int64_t{1}}) {
          if (i < n && rows.size() < 32) add((b * heads + h) * n + i);
        }
      }
    }
    return rows;
  }

  void explain(Diagnosis* made) {
    const double roundoff = exact_ ? 0x1p-53 : 0x1p-24;
    Evidence evidence{inputs_,
                      comparison_,
                      evidence_rows(),
                      {roundoff, roundoff_of(theirs_.dtype)},
                      check_options_.tolerance.value_or(0)};
    made->rows_explained = static_cast<std::int64_t>(evidence.rows.size());
    std::vector<diagnose::Trial> trials = diagnose::try_single_mistakes(evidence, made->verdict != Verdict::right);
    made->invisible = diagnose::invisible_of(trials);
    if (made->verdict == Verdict::right) return;
    made->explanations = diagnose::explanations_of(trials);
    if (made->explanations.empty() && is_coarser(evidence, made)) return;
    // A mistake in code that computes in 16 bits.
    if (made->explanations.empty() && is_half(theirs_.dtype)) {
      evidence.rounding = {roundoff_of(theirs_.dtype), roundoff_of(theirs_.dtype), true};
      trials = diagnose::try_single_mistakes(evidence, true);
      made->explanations = diagnose::explanations_of(trials);
      if (!made->explanations.empty()) made->precision = name_of(theirs_.dtype);
    }
    const bool scale = !made->explanations.empty() && made->explanations.front().ids.front().starts_with("scale-");
    if (made->explanations.empty() || scale) made->fitted_scale = diagnose::fit_scale(evidence);
    if (made->fitted_scale) made->fitted_formula = diagnose::scale_formula(*made->fitted_scale);
    if (made->explanations.empty() && !made->fitted_scale)
      made->explanations = diagnose::pairs_of_mistakes(evidence, trials);
    if (made->explanations.empty() && !made->fitted_scale) {
      made->closest = diagnose::closest_of(trials);
    } else {
      made->verdict = Verdict::wrong;
    }
  }

  static bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

  // Right but for the precision it was computed in: a precision in tensors of that type, a mistake in others.
  // Coarse arithmetic shows in many rows, not in one.
  bool is_coarser(const Evidence& evidence, Diagnosis* made) const {
    if (!is_half(theirs_.dtype) && made->rows_differing * 8 < made->rows) return false;
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      if ((type == DType::f32 && !exact_) || (is_half(theirs_.dtype) && type != theirs_.dtype)) continue;
      if (!fits_with(evidence, type)) continue;
      made->precision = name_of(type);
      if (type == DType::f32 || is_half(theirs_.dtype)) {
        made->verdict = Verdict::right;
        made->rows_differing = 0;
        made->bound = coarse_bound(evidence, type, made->where);
        made->patterns.clear();
      } else {
        made->verdict = Verdict::wrong;
        made->explanations = {
            {{"softmax-16bit"}, made->max_error, std::string("as if computed in ") + name_of(type)}};
      }
      return true;
    }
    return false;
  }

  diagnose::Rounding rounding_of(const Evidence& evidence, DType type) const {
    const double roundoff = roundoff_of(type);
    return {roundoff, std::max(roundoff, evidence.rounding.stored), type != DType::f32};
  }

  // What arithmetic of that type may be off by at a place.
  double coarse_bound(const Evidence& evidence, DType type, const OutPlace& where) const {
    diagnose::RowMaker maker(inputs_, kRight, rounding_of(evidence, type));
    return maker.row(where.batch, where.head, where.row).tolerance[static_cast<std::size_t>(where.column)];
  }

  bool fits_with(const Evidence& evidence, DType type) const {
    diagnose::RowMaker maker(inputs_, kRight, rounding_of(evidence, type));
    for (const RowPlace& place : evidence.rows) {
      const diagnose::RecipeRow row = maker.row(place.batch, place.head, place.row);
      for (std::size_t c = 0; c < row.out.size(); ++c) {
        if (!reference::agrees(comparison_.theirs(place)[c], row.out[c], row.tolerance[c])) return false;
      }
    }
    return true;
  }

  const TensorView &q_, &k_, &v_, &theirs_;
  const AttentionOptions& options_;
  const CheckOptions& check_options_;
  const reference::Inputs inputs_;
  const bool exact_;
  Comparison comparison_;
};

}  // namespace

Status check(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& theirs,
             const AttentionOptions& options, const CheckOptions& check_options, Diagnosis* diagnosis) {
  ATTN_RETURN_IF_ERROR(check_arguments(q, k, v, theirs, options));
  ATTN_RETURN_IF_ERROR(diagnose::check_side_answers(q, k, check_options));
  return Examination(q, k, v, theirs, options, check_options).run(diagnosis);
}

}  // namespace attn

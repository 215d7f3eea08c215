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
#include "diagnose/judge.h"
#include "diagnose/side_answers.h"

namespace attn {
namespace {

using diagnose::Comparison;
using diagnose::Evidence;
using diagnose::Given;
using diagnose::RowPlace;
using diagnose::shape_text;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows that the float64 reference judges: the worst, and some spread over the problem.
constexpr std::size_t kWorstRows = 56, kSpreadRows = 24;

// Multiply-adds that one mistake's rows may take: all of them together then take a second or two.
constexpr double kEvidenceWork = 5e6;

Status check_arguments(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& theirs,
                       const AttentionOptions& options) {
  Plan none;
  ATTN_RETURN_IF_ERROR(plan(q, k, v, options, &none));
  if (options.key_offset != 0)
    return Status::error("options: key_offset is not checked in this version; give all keys, from the first on");
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
  return Status::error("theirs: shape " + shape_text(given) + ", but out is " + shape_text(expected) +
                       "; give the whole answer");
}

// One check, step by step.
class Examination {
 public:
  Examination(const Given& given, const CheckOptions& check_options)
      : given_(given),
        check_options_(check_options),
        inputs_(given.q, given.k, given.v, given.options),
        stored_(diagnose::stored_type_of(given.theirs)) {}

  Status run(Diagnosis* diagnosis) {
    ATTN_RETURN_IF_ERROR(Comparison::make(inputs_, given_.theirs, &comparison_));
    Diagnosis made;
    made.rows = comparison_.rows();
    if (made.rows > 0 && comparison_.columns() > 0) {
      decide(&made);
      explain(&made);
      for (std::string& sentence : diagnose::look_at_side_answers(inputs_, evidence_rows(), check_options_))
        made.patterns.push_back(std::move(sentence));
    }
    *diagnosis = std::move(made);
    return {};
  }

 private:
  // Tensors of 16 bits, also where they were saved as wider ones.
  bool is_of(DType half) const {
    if (stored_ != half) return false;
    if (given_.theirs.dtype == half || given_.q.dtype == half || given_.v.dtype == half) return true;
    return diagnose::stored_type_of(given_.q) == half && diagnose::stored_type_of(given_.v) == half;
  }

  // What theirs may have been computed in, the finest first. A given tolerance stands for all of that.
  std::vector<DType> arithmetics() const {
    std::vector<DType> all;
    if (given_.theirs.dtype == DType::f64) all.push_back(DType::f64);
    all.push_back(DType::f32);
    if (given_.tolerance) return {DType::f32};
    for (const DType half : {DType::f16, DType::bf16}) {
      if (is_of(half)) all.push_back(half);
    }
    return all;
  }

  // How theirs is stored, for arithmetic in wider tensors than need be.
  DType stored_for(DType arithmetic) const {
    return arithmetic == DType::f64 ? given_.theirs.dtype : is_of(stored_) ? stored_ : given_.theirs.dtype;
  }

  diagnose::Judgement judged(DType arithmetic) const {
    return diagnose::judge(given_, inputs_, comparison_, judged_rows_, arithmetic, stored_for(arithmetic));
  }

  void decide(Diagnosis* made) {
    judged_rows_ = comparison_.worst_rows(kWorstRows);
    std::set<std::int64_t> seen(judged_rows_.begin(), judged_rows_.end());
    for (std::size_t n = 0; n < kSpreadRows; ++n) {
      const std::int64_t row =
          static_cast<std::int64_t>(n) * (comparison_.rows() - 1) / static_cast<std::int64_t>(kSpreadRows - 1);
      if (seen.insert(row).second) judged_rows_.push_back(row);
    }
    made->rows_judged = static_cast<std::int64_t>(judged_rows_.size());
    std::optional<diagnose::Judgement> finest, right;
    for (const DType arithmetic : arithmetics()) {
      diagnose::Judgement judgement = judged(arithmetic);
      if (judgement.right()) {
        right = std::move(judgement);
        break;
      }
      // Wrong in f64 and in f32 is told by f32's bounds.
      if (!finest || finest->arithmetic == DType::f64) finest = std::move(judgement);
    }
    const diagnose::Judgement& told = right ? *right : *finest;
    made->verdict = right ? Verdict::right : Verdict::unexplained;
    made->precision = right && !given_.tolerance ? name_of(told.arithmetic) : "";
    made->max_error = told.max_error;
    made->bound = told.bound;
    made->where = told.where;
    if (!right) describe(told, made);
  }

  void describe(const diagnose::Judgement& judgement, Diagnosis* made) const {
    const std::set<std::int64_t> judged(judged_rows_.begin(), judged_rows_.end());
    const double allowed = std::max(judgement.largest_right, judgement.bound);
    std::vector<bool> differs, not_finite;
    for (std::int64_t row = 0; row < comparison_.rows(); ++row) {
      const double difference = comparison_.difference(row);
      differs.push_back(judged.contains(row) ? judgement.wrong.contains(row) : difference > allowed);
      not_finite.push_back(difference == kInfinity);
      made->rows_differing += differs.back();
    }
    made->patterns = diagnose::describe_pattern(inputs_, differs, not_finite);
  }

  // The most telling rows first: the worst, then rows of several heads and positions, wrong and right ones; all of them where
  // they are few, and fewer where keys are many.
  std::vector<RowPlace> evidence_rows() const {
    std::vector<RowPlace> rows;
    std::set<std::int64_t> seen;
    const auto [batch, heads, n, columns] = inputs_.query.shape;
    const double row_work = static_cast<double>(inputs_.key.shape[2] * (columns + comparison_.columns()) + 1);
    const auto most = static_cast<std::size_t>(std::clamp(kEvidenceWork / row_work, 1.0, 32.0));
    const auto add = [&](std::int64_t index) {
      const RowPlace place = comparison_.place_of(index);
      const bool padding = place.row >= inputs_.sequences[static_cast<std::size_t>(place.batch)].queries;
      if (!padding && rows.size() < most && seen.insert(index).second) rows.push_back(place);
    };
    for (const std::int64_t row : comparison_.worst_rows(3)) add(row);
    for (const std::int64_t b : {std::int64_t{0}, batch - 1, batch / 2}) {
      for (const std::int64_t h : {std::int64_t{0}, heads - 1, heads / 2}) {
        for (const std::int64_t i : {n - 1, n / 2, std::int64_t{0}, n / 3, std::int64_t{1}}) {
          if (i < n) add((b * heads + h) * n + i);
        }
      }
    }
    if (comparison_.rows() <= 32) {
      for (std::int64_t row = 0; row < comparison_.rows(); ++row) add(row);
    }
    return rows;
  }

  void explain(Diagnosis* made) {
    const bool exact = given_.q.dtype == DType::f64 && given_.theirs.dtype == DType::f64;
    const DType stored = stored_for(exact ? DType::f64 : DType::f32);
    Evidence evidence{inputs_,
                      comparison_,
                      evidence_rows(),
                      {exact ? 0x1p-53 : 0x1p-24, diagnose::roundoff_of(stored)},
                      given_.tolerance.value_or(0)};
    made->rows_explained = static_cast<std::int64_t>(evidence.rows.size());
    if (evidence.rows.empty()) return;  // padding alone
    const bool wrong = made->verdict != Verdict::right;
    const std::vector<diagnose::Trial> trials = diagnose::try_single_mistakes(evidence, wrong);
    made->invisible = diagnose::invisible_of(trials);
    if (!wrong) return;
    made->explanations = diagnose::explanations_of(trials);
    const bool scale = !made->explanations.empty() && made->explanations.front().ids.front().starts_with("scale-");
    if (made->explanations.empty() || scale) made->fitted_scale = diagnose::fit_scale(evidence);
    if (made->fitted_scale) made->fitted_formula = diagnose::scale_formula(*made->fitted_scale);
    if (made->explanations.empty() && !made->fitted_scale)
      made->explanations = diagnose::pairs_of_mistakes(evidence, trials);
    if (made->explanations.empty() && !made->fitted_scale) explain_coarsely(evidence, made);
    if (!made->explanations.empty() || made->fitted_scale) {
      made->verdict = Verdict::wrong;
    } else {
      made->closest = diagnose::closest_of(trials);
    }
  }

  // Right in 16 bits, which these tensors do not have; or a single mistake in code that computes in 16 bits.
  // Coarse arithmetic shows in many rows, not in one.
  void explain_coarsely(Evidence& evidence, Diagnosis* made) const {
    if (given_.tolerance || made->rows_differing * 8 < made->rows) return;
    for (const DType half : {DType::f16, DType::bf16}) {
      if (is_of(half)) {
        evidence.rounding = {diagnose::roundoff_of(half), diagnose::roundoff_of(half), true};
        made->explanations = diagnose::explanations_of(diagnose::try_single_mistakes(evidence, true));
        return;
      }
      if (!judged(half).right()) continue;
      made->explanations = {
          {{"softmax-16bit"}, made->max_error, std::string("as if computed in ") + name_of(half)}};
      return;
    }
  }

  const Given& given_;
  const CheckOptions& check_options_;
  const reference::Inputs inputs_;
  const DType stored_;
  Comparison comparison_;
  std::vector<std::int64_t> judged_rows_;
};

}  // namespace

Status check(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& theirs,
             const AttentionOptions& options, const CheckOptions& check_options, Diagnosis* diagnosis) {
  ATTN_RETURN_IF_ERROR(check_arguments(q, k, v, theirs, options));
  ATTN_RETURN_IF_ERROR(diagnose::check_side_answers(q, k, check_options));
  if (check_options.tolerance && !(*check_options.tolerance >= 0))
    return Status::error("tolerance: it is below 0 or no number; give a difference that is allowed");
  const Given given{q, k, v, theirs, options, check_options.tolerance};
  return Examination(given, check_options).run(diagnosis);
}

}  // namespace attn

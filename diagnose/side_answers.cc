#include "diagnose/side_answers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "reference/row.h"

namespace attn::diagnose {
namespace {

// Weights and log-sum-exps in f32, of scores of some tens; in 16 bits, what those hold.
double near_of(DType dtype) { return dtype == DType::bf16 ? 2e-2 : dtype == DType::f16 ? 2e-3 : 1e-4; }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

Status check_shape(const char* name, const TensorView& view, const std::vector<std::int64_t>& expected) {
  if (view.rank < 0 || view.rank > kMaxRank || !is_float(view.dtype))
    return Status::error(std::string(name) + ": it is no tensor of floating-point numbers; leave it out");
  const std::vector<std::int64_t> given(view.shape.begin(), view.shape.begin() + view.rank);
  if (given == expected) return {};
  return Status::error(std::string(name) + ": shape " + shape_text(given) + ", but " + shape_text(expected) +
                       " goes with q and k");
}

bool near(double a, double b, double tolerance) {
  return a == b || std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
}

std::string about_weights(const reference::Inputs& inputs, const std::vector<RowPlace>& rows,
                          const TensorView& theirs) {
  double worst = 0, sum_off = 0;
  for (const RowPlace& place : rows) {
    const auto& sequence = inputs.sequences[static_cast<std::size_t>(place.batch)];
    const reference::Row row = reference::attend(inputs, sequence, place.head, place.row);
    std::vector<double> expected(static_cast<std::size_t>(inputs.key.shape[2]), 0.0);
    for (std::size_t n = 0; n < row.keys.size(); ++n)
      expected[static_cast<std::size_t>(row.keys[n])] = row.weights[n];
    double sum = 0, expected_sum = 0;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      const double weight =
          reference::read_at(theirs, {place.batch, place.head, place.row, static_cast<std::int64_t>(j)});
      const double difference = std::fabs(weight - expected[j]);
      worst = std::isnan(difference) || difference > worst ? difference : worst;
      sum += weight;
      expected_sum += expected[j];
    }
    if (std::fabs(sum - expected_sum) > std::fabs(sum_off)) sum_off = sum - expected_sum;
  }
  const double tolerance = near_of(theirs.dtype);
  if (worst <= tolerance)
    return "Their weights are right: if out is not, look behind them, at the values, their heads or the merge.";
  const std::string by = "Their weights differ, by up to " + number(worst);
  if (std::isnan(worst)) return by + ".";
  return by + (std::fabs(sum_off) > tolerance ? "; the sum of a row is off by " + number(sum_off) + "."
                                              : "; rows add up as they should.");
}

std::string about_lse(const reference::Inputs& inputs, const std::vector<RowPlace>& rows,
                      const TensorView& theirs) {
  const double tolerance = near_of(theirs.dtype);
  bool right = true, base_2 = true;
  double worst = 0;
  for (const RowPlace& place : rows) {
    const auto& sequence = inputs.sequences[static_cast<std::size_t>(place.batch)];
    const double expected = reference::attend(inputs, sequence, place.head, place.row).lse;
    const double given = reference::read_at(theirs, {0, place.batch, place.head, place.row});
    right = right && near(given, expected, tolerance);
    base_2 = base_2 && near(given * std::numbers::ln2, expected, tolerance);
    if (!near(given, expected, tolerance))
      worst = std::isnan(given) || std::fabs(given - expected) > worst ? std::fabs(given - expected) : worst;
  }
  if (right) return "Their lse is right: scores, masks and sums are.";
  if (base_2) return "Their lse is of base 2 (lse-base): multiplied by ln 2 it is right.";
  return "Their lse differs, by up to " + number(worst) + ": the mistake lies in scores, masks or sums.";
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

Status check_side_answers(const TensorView& q, const TensorView& k, const CheckOptions& check_options) {
  std::vector<std::int64_t> rows(q.shape.begin(), q.shape.begin() + q.rank - 1), weights = rows;
  weights.push_back(k.shape[static_cast<std::size_t>(k.rank - 2)]);
  if (check_options.weights) ATTN_RETURN_IF_ERROR(check_shape("weights", *check_options.weights, weights));
  if (check_options.lse) ATTN_RETURN_IF_ERROR(check_shape("lse", *check_options.lse, rows));
  return {};
}

std::vector<std::string> look_at_side_answers(const reference::Inputs& inputs, const std::vector<RowPlace>& rows,
                                              const CheckOptions& check_options) {
  std::vector<std::string> sentences;
  if (check_options.weights) sentences.push_back(about_weights(inputs, rows, *check_options.weights));
  if (check_options.lse) sentences.push_back(about_lse(inputs, rows, *check_options.lse));
  return sentences;
}

}  // namespace attn::diagnose

#include "diagnose/side_answers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "reference/row.h"

namespace attn::diagnose {
namespace {

// Weights and log-sum-exps in f32, of scores of some tens.
constexpr double kNear = 1e-4;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

Status check_shape(const char* name, const TensorView& view, const std::vector<std::int64_t>& expected) {
  if (view.rank < 0 || view.rank > kMaxRank || !is_float(view.dtype))
    return Status::error(std::string(name) + ": it is no tensor of floating-point numbers; leave it out");
  const std::vector<std::int64_t> given(view.shape.begin(), view.shape.begin() + view.rank);
  if (given == expected) return {};
  return Status::error(std::string(name) + ": shape " + text_of(given) + ", but " + text_of(expected) +
                       " goes with q and k");
}

bool near(double a, double b) { return a == b || std::fabs(a - b) <= kNear * std::max(1.0, std::fabs(b)); }

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
  if (worst <= kNear)
    return "Their weights are right: what differs lies behind them, in the values, their heads or the merge.";
  return "Their weights differ, too, by up to " + number(worst) +
         (std::fabs(sum_off) > kNear ? "; a row adds up to " + number(1 + sum_off) + " instead of 1."
                                     : "; rows add up as they should.");
}

std::string about_lse(const reference::Inputs& inputs, const std::vector<RowPlace>& rows,
                      const TensorView& theirs) {
  bool right = true, base_2 = true;
  double worst = 0;
  for (const RowPlace& place : rows) {
    const auto& sequence = inputs.sequences[static_cast<std::size_t>(place.batch)];
    const double expected = reference::attend(inputs, sequence, place.head, place.row).lse;
    const double given = reference::read_at(theirs, {0, place.batch, place.head, place.row});
    right = right && near(given, expected);
    base_2 = base_2 && near(given * std::numbers::ln2, expected);
    if (!near(given, expected)) worst = std::fmax(worst, std::fabs(given - expected));
  }
  if (right) return "Their lse is right: scores, masks and sums are.";
  if (base_2) return "Their lse is of base 2 (lse-base): multiplied by ln 2 it is right.";
  return "Their lse differs, by up to " + number(worst) + ": the mistake lies in scores, masks or sums.";
}

}  // namespace

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

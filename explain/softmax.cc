// The steps from masked scores to weights and outputs.
#include <cmath>
#include <limits>

#include "explain/overflow.h"
#include "explain/writer.h"

namespace attn::explain {
namespace {

using reference::HeadTrace;

// The keys that a row says something about: hidden ones and scores of −∞ are left out.
std::vector<std::size_t> heard_keys(const std::vector<double>& masked) {
  std::vector<std::size_t> keys;
  for (std::size_t j = 0; j < masked.size(); ++j) {
    if (masked[j] != -std::numeric_limits<double>::infinity()) keys.push_back(j);
  }
  return keys;
}

// "exp(0.707 − 2.121) + … = 0.243 + … = 1.486", and under it the divisions.
void write_row(const Writer& writer, const HeadTrace& head, std::size_t i, std::vector<Calculations::Line>* lines) {
  const std::vector<std::size_t> keys = heard_keys(head.masked[i]);
  const bool has_sink = !head.sink_weights.empty();
  if (keys.empty() && !has_sink) {
    lines->push_back({writer.token(i), "sees no key: every weight is 0"});
    return;
  }
  const double sum = std::exp(head.lse[i] - head.max[i]);
  std::string exponents, terms, divisions;
  for (const std::size_t j : keys) {
    const std::string term = number_text(std::exp(head.masked[i][j] - head.max[i]));
    exponents += (exponents.empty() ? "exp(" : " + exp(") + number_text(head.masked[i][j]) + " − " +
                 factor_text(head.max[i]) + ")";
    terms += (terms.empty() ? "" : " + ") + term;
    divisions +=
        (divisions.empty() ? "" : ", ") + term + " / " + number_text(sum) + " = " + number_text(head.weights[i][j]);
  }
  if (has_sink) {
    const std::string term = number_text(sum * head.sink_weights[i]);
    exponents += (exponents.empty() ? "" : " + ") + term;
    terms += (terms.empty() ? "" : " + ") + term;
  }
  if (keys.size() > kMostTerms) exponents = "the sum of " + std::to_string(keys.size()) + " exponentials";
  std::string line = exponents;
  if (keys.size() <= kMostTerms && terms.find('+') != std::string::npos) line += " = " + terms;
  if (line != number_text(sum)) line += " = " + number_text(sum);
  lines->push_back({writer.token(i), line});
  if (!keys.empty() && keys.size() <= kMostTerms) lines->push_back({"", divisions});
}

// "0.673·(3, 0) + 0.164·(0, 4) = (2.18, 0.82)"; keys without weight are left out.
std::string weighted_sum(const HeadTrace& head, std::size_t i) {
  std::string terms;
  std::size_t count = 0;
  for (std::size_t j = 0; j < head.v.size(); ++j) {
    if (head.weights[i][j] == 0) continue;
    ++count;
    terms += (terms.empty() ? "" : " + ") + number_text(head.weights[i][j]) + "·" + vector_text(head.v[j]);
  }
  if (count > kMostTerms) terms = "the sum of " + std::to_string(count) + " weighted values";
  if (count == 0) terms = "nothing to add up";
  return terms + " = " + vector_text(head.out[i], kOutputDigits);
}

}  // namespace

void tell_softmax(Writer& writer, const HeadTrace& head) {
  const std::vector<std::size_t> broken = rows_not_finite(head.weights);
  writer.step("softmax, row by row");
  writer.say(
      std::string("The exponential makes every score positive, the division makes a row ") +
      (broken.empty() ? "" : "of finite scores ") +
      "add up to 1. The row's largest score is taken off first: it changes no weight, and no exponential can "
      "overflow.");
  if (!head.sink_weights.empty()) {
    writer.say("A sink joins each sum as its last term: it takes weight and has no value to give.");
  }
  std::vector<Calculations::Line> lines;
  for (const std::size_t i : writer.queries_to_write_out()) write_row(writer, head, i, &lines);
  writer.calculate(std::move(lines));
  writer.queries_by_keys("weights", head.weights);
  if (!broken.empty()) {
    writer.note(
        "The weights of " + writer.names_of(broken) +
        " are not numbers (nan): numbers beyond the range of f64 overflowed, and ∞ − ∞ has no value. They add "
        "up to nothing.");
  }
  if (broken.size() == head.weights.size()) return;
  const std::string row = broken.empty() ? "Each row" : "Each other row";
  writer.note(head.sink_weights.empty()
                  ? row +
                        " that sees a key adds up to 1. Equal scores get equal weights; a difference of 1 is a "
                        "factor of 2.718."
                  : row + " adds up to less than 1: the rest went to the sink.");
}

void tell_outputs(Writer& writer, const HeadTrace& head) {
  writer.step("outputs: values, blended by the weights");
  std::vector<Calculations::Line> lines;
  for (const std::size_t i : writer.queries_to_write_out())
    lines.push_back({writer.token(i), weighted_sum(head, i)});
  writer.calculate(std::move(lines));
  writer.rows("out", head.out, kOutputDigits);
  const std::vector<std::size_t> broken = rows_not_finite(head.out);
  if (!broken.empty()) {
    writer.note("The outputs of " + writer.names_of(broken) +
                " hold what is no finite number: numbers beyond the range of f64 overflowed.");
  }
  if (head.sink_weights.empty() && broken.size() < head.out.size()) {
    writer.note(std::string(broken.empty() ? "An output" : "Any other output") +
                " lies among the values that it blends; a query that sees one key gets that key's value exactly.");
  }
}

}  // namespace attn::explain

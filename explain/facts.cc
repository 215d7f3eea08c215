// Facts around attention, worked out and not looked up.
#include "explain/facts.h"

#include <cmath>
#include <cstdint>

#include "explain/numbers.h"
#include "reference/reference.h"

namespace attn::explain {
namespace {

constexpr int kFineDigits = 5;

Calculations::Line softmax_line(const std::vector<double>& scores) {
  return {"", "softmax" + vector_text(scores) + " = " + vector_text(softmax(scores), kFineDigits)};
}

}  // namespace

std::vector<double> softmax(const std::vector<double>& scores) {
  // A query of 1 over keys that are the scores: attention's own weights are the softmax.
  const double query = 1;
  const std::vector<double> values(scores.size(), 0.0);
  const std::int64_t keys = static_cast<std::int64_t>(scores.size());
  AttentionOptions options;
  options.scale = 1;
  return reference::attention({&query, DType::f64, {1, 1}}, {scores.data(), DType::f64, {keys, 1}},
                              {values.data(), DType::f64, {keys, 1}}, options, /*keep_weights=*/true)
      .weights;
}

const std::vector<double>& spread_scores() {
  static const std::vector<double> scores = {11, 0, -11};
  return scores;
}

const std::vector<double>& scaled_scores() {
  static const std::vector<double> scores = {1, 0, -1};
  return scores;
}

std::vector<Block> why_scale() {
  const double spread = std::sqrt(128.0);
  return {Paragraph{"Why divide by √d at all? The dot product of two random vectors of length d, each number of "
                    "variance 1, has variance d. With d = 128 scores spread by about √128 = " +
                    number_text(spread, 1) +
                    ", with d = 64 by 8; divided by √d the spread is about 1 whatever d is. Softmax feels the "
                    "difference:"},
          Calculations{{softmax_line(spread_scores()), softmax_line(scaled_scores())}},
          Note{"In the first line one key takes everything and the others are silenced: the softmax is saturated, "
               "small changes of a score change nothing, and a model can't learn. In the second all still speak."}};
}

std::vector<Block> closing_facts() {
  return {
      Heading{1, "Worth knowing"},
      Paragraph{"N tokens make N² scores, in every head of every layer: 1,000 tokens 10⁶, 10,000 tokens 10⁸, "
                "100,000 tokens 10¹⁰. Written out as above, the tables would soon fill any memory; worked tile by "
                "tile they are never stored, and the result is the same."},
      Note{"Weights show where a value came from. They do not show why a model said something: values are "
           "mixtures themselves, and many heads and layers follow."}};
}

}  // namespace attn::explain

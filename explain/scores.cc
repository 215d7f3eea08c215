// The steps from queries and keys to masked scores.
#include <cmath>

#include "explain/facts.h"
#include "explain/overflow.h"
#include "explain/writer.h"
#include "reference/inputs.h"

namespace attn::explain {
namespace {

using reference::HeadTrace;
using reference::Matrix;

// Slopes are powers of two, down to 2⁻⁸.
constexpr int kSlopeDigits = 8;

// Names the pair that scores highest: the first thing to look for in a table.
void note_largest(Writer& writer, const Matrix& scores) {
  std::size_t query = 0, key = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores[i].size(); ++j) {
      if (scores[i][j] > scores[query][key] || std::isnan(scores[query][key])) query = i, key = j;
    }
  }
  if (std::isnan(scores[query][key])) return;
  writer.note(
      "The largest score is " + number_text(scores[query][key]) + ": the query of " + writer.token(query) +
      " and the key of " + writer.token(key) +
      ". A large dot product means that two vectors are long and point the same way; 0 means that they have "
      "nothing to do with each other.");
}

void tell_products(Writer& writer, const HeadTrace& head) {
  writer.step("every query meets every key");
  writer.say("The score of a query and a key is their dot product, query → key:");
  std::vector<Calculations::Line> lines;
  for (const std::size_t i : writer.queries_to_write_out()) {
    for (std::size_t j = 0; j < head.k.size(); ++j) {
      lines.push_back({writer.token(i) + " → " + writer.token(j),
                       vector_text(head.q[i]) + "·" + vector_text(head.k[j]) + " = " +
                           dot_product_text(head.q[i], head.k[j]) + " = " + number_text(head.scores[i][j])});
    }
  }
  writer.calculate(std::move(lines));
  writer.queries_by_keys("scores: rows are queries, columns are keys", head.scores);
  note_largest(writer, head.scores);
}

void tell_scale(Writer& writer, const HeadTrace& head) {
  const std::size_t dimension = head.q.front().size();
  const auto& given = writer.problem().options.scale;
  if (given && *given == 1) {
    writer.step("no scaling");
    writer.say("Scores are taken as they are (scale 1).");
  } else if (given) {
    writer.step("scale");
    writer.say("Each score is multiplied by " + number_text(*given) + ".");
  } else {
    const std::string root = "√" + std::to_string(dimension);
    writer.step("scale");
    writer.say("Each score is divided by " + root + " = " + number_text(std::sqrt(static_cast<double>(dimension))) +
               ", the square root of the head dimension.");
  }
  writer.queries_by_keys("scaled scores", head.scaled);
  // Told once, however many heads there are.
  if (&head == &writer.trace().heads.front()) writer.add(why_scale());
}

void tell_softcap(Writer& writer, const HeadTrace& head) {
  const std::string cap = number_text(*writer.problem().options.softcap);
  writer.step("softcap");
  writer.say("Each score s becomes " + cap + "·tanh(s / " + cap + "), which never leaves −" + cap + " to " + cap +
             ". Small scores hardly change.");
  writer.queries_by_keys("capped scores", head.softcapped);
}

void tell_bias(Writer& writer, const HeadTrace& head) {
  const AttentionOptions& options = writer.problem().options;
  writer.step(options.alibi ? "distance counts" : "bias");
  if (options.bias) writer.say("A bias is added to each score.");
  if (options.alibi) {
    const auto index = static_cast<std::int64_t>(&head - writer.trace().heads.data());
    const double slope = reference::read_head(*options.alibi, index);
    writer.say("ALiBi: the distance of query and key, times this head's slope of " +
               number_text(slope, kSlopeDigits) +
               ", is taken off each score. Far keys have to be that much better.");
  }
  writer.queries_by_keys("biased scores", head.biased);
}

void tell_mask(Writer& writer, const HeadTrace& head) {
  const std::vector<std::string> rules = visibility_rules(writer.problem().options);
  writer.step("mask");
  for (const std::string& rule : rules) writer.say(rule);
  if (rules.empty()) writer.say("Nothing is hidden: every query sees every key.");
  writer.queries_by_keys("masked scores", head.masked);
  if (!rules.empty()) {
    writer.note(
        "−∞ is no large negative number but the absence of a score: a hidden key weighs exactly 0, whatever "
        "it holds.");
  }
  const auto overflowed = rows_of_overflowed_scores(writer.problem(), writer.trace(), head);
  if (overflowed.empty()) return;
  writer.note(
      (overflowed.size() == 1 ? "In the row of " : "In the rows of ") + writer.names_of(overflowed) +
      ", scores went beyond the range of f64, which ends at 1.8·10³⁰⁸: they overflowed to ∞, −∞ or nan, and "
      "what follows from them is no longer what the formulas mean.");
}

}  // namespace

void tell_scores(Writer& writer, const HeadTrace& head) {
  tell_products(writer, head);
  tell_scale(writer, head);
  if (!head.softcapped.empty()) tell_softcap(writer, head);
  if (!head.biased.empty()) tell_bias(writer, head);
  tell_mask(writer, head);
}

}  // namespace attn::explain

// The lesson as a whole: beginning, the steps of each head, what is worth knowing, the result.
#include "explain/lesson.h"

#include "explain/facts.h"
#include "explain/overflow.h"
#include "explain/writer.h"

namespace attn::explain {
namespace {

using reference::HeadTrace;
using reference::Matrix;

void tell_beginning(Writer& writer, const std::vector<std::string>& remarks) {
  writer.say("The tokens are " + list_text(writer.trace().tokens) +
             ". Each asks something (its query), answers to something (its key) and has something to give (its "
             "value). Comparing a query with all keys gives weights; the output is the values, blended by these "
             "weights:");
  writer.calculate({{"", "out = softmax(q·kᵀ·scale + mask)·v"}});
  writer.say("Numbers are shown with a few decimals and worked in full precision.");
  for (const std::string& remark : remarks) writer.say(remark);
}

// One matrix product, row by row, and what was put in its place by hand.
void tell_projection(Writer& writer, char name, const Matrix& weights, const Matrix& projected) {
  const reference::Trace& trace = writer.trace();
  std::vector<Calculations::Line> lines;
  for (const std::size_t r : writer.queries_to_write_out()) {
    std::string line = vector_text(projected[r]);
    for (const auto& replacement : writer.problem().replaced) {
      if (replacement.matrix == name && replacement.row == static_cast<std::int64_t>(r)) line += " set by hand";
    }
    if (line == vector_text(projected[r]) && trace.x[r].size() <= kMostTerms && projected[r].size() <= kMostTerms) {
      std::string sums;
      for (std::size_t d = 0; d < projected[r].size(); ++d) {
        std::vector<double> column;
        for (const auto& row : weights) column.push_back(row[d]);
        sums += (d == 0 ? "" : ", ") + dot_product_text(trace.x[r], column);
      }
      line = "(" + sums + ") = " + line;
    }
    lines.push_back({writer.token(r), line});
  }
  writer.calculate(std::move(lines));
}

void tell_given_rows(Writer& writer) {
  writer.step("queries, keys and values, as given");
  writer.rows("q", writer.trace().q);
  writer.rows("k", writer.trace().k);
  writer.rows("v", writer.trace().v);
  for (const auto& replacement : writer.problem().replaced) {
    writer.note(std::string(1, replacement.matrix) + " of " + writer.token(replacement.row) + " is set to " +
                vector_text(replacement.values) + " by hand.");
  }
}

void tell_result(Writer& writer) {
  const reference::Trace& trace = writer.trace();
  writer.part("Result");
  if (!rows_not_finite(trace.out).empty()) {
    writer.say("Where nan or ∞ stands, numbers beyond the range of f64 overflowed: that is no result.");
  }
  for (std::size_t h = 0; h < trace.heads.size(); ++h) {
    const std::string of_head = trace.heads.size() > 1 ? " of head " + std::to_string(h + 1) : "";
    writer.say("Weights" + of_head + " (a row a query, a column a key):");
    std::vector<Calculations::Line> lines;
    for (std::size_t i = 0; i < trace.tokens.size(); ++i) {
      lines.push_back({writer.token(i), plain_row_text(trace.heads[h].weights[i])});
    }
    writer.calculate(std::move(lines));
  }
  writer.say(trace.heads.size() > 1 ? "Outputs, the heads side by side:" : "Outputs:");
  std::vector<Calculations::Line> lines;
  for (std::size_t i = 0; i < trace.tokens.size(); ++i) {
    lines.push_back({writer.token(i), vector_text(trace.out[i], kOutputDigits)});
  }
  writer.calculate(std::move(lines));
}

}  // namespace

void tell_inputs(Writer& writer) {
  const reference::Trace& trace = writer.trace();
  if (trace.x.empty()) return tell_given_rows(writer);
  writer.step("tokens become numbers");
  writer.say("Each token has an embedding, a row of x.");
  writer.rows("x", trace.x);
  writer.say(
      "Three matrices turn an embedding into a query, a key and a value. They are what training learns. A layer of "
      "a "
      "model has a fourth as a rule, its output projection, which mixes the columns of the outputs: a matrix "
      "product "
      "behind attention, and no part of it.");
  writer.numbered_rows("wq", trace.wq);
  writer.numbered_rows("wk", trace.wk);
  writer.numbered_rows("wv", trace.wv);

  writer.step("queries, keys and values");
  writer.say("q = x·wq: a row of x with each column of wq.");
  tell_projection(writer, 'q', trace.wq, trace.q);
  writer.say("k = x·wk:");
  tell_projection(writer, 'k', trace.wk, trace.k);
  writer.say("v = x·wv:");
  tell_projection(writer, 'v', trace.wv, trace.v);
  writer.note(
      "One embedding, three roles. What a token looks for need not be what it is found by, and neither need "
      "be what it hands over.");
}

Document lesson(const reference::Problem& problem, const reference::Trace& trace,
                const std::vector<std::string>& remarks) {
  Writer writer(problem, trace);
  writer.document().title = "Attention, worked by hand";
  tell_beginning(writer, remarks);
  tell_inputs(writer);
  for (std::size_t h = 0; h < trace.heads.size(); ++h) {
    const HeadTrace& head = trace.heads[h];
    if (trace.heads.size() > 1) {
      writer.part("Head " + std::to_string(h + 1) + " of " + std::to_string(trace.heads.size()));
      writer.say(
          "Each head has some columns of q, k and v for its own, and attends with these alone. What heads found "
          "meets "
          "only behind attention, in the layer's output projection, where it has one.");
      writer.rows("q", head.q);
      writer.rows("k", head.k);
      writer.rows("v", head.v);
    }
    tell_scores(writer, head);
    tell_softmax(writer, head);
    tell_outputs(writer, head);
    if (!head.tiles.empty()) tell_tiles(writer, head);
    if (!head.steps.empty()) tell_cache(writer, head);
  }
  writer.add(closing_facts());
  tell_result(writer);
  return std::move(writer.document());
}

}  // namespace attn::explain

// The pen of a lesson: it counts the steps and knows how tokens, rows and tables are written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "explain/document.h"
#include "explain/numbers.h"
#include "reference/trace.h"

namespace attn::explain {

class Writer {
 public:
  Writer(const reference::Problem& problem, const reference::Trace& trace) : problem_(problem), trace_(trace) {}

  const reference::Problem& problem() const { return problem_; }
  const reference::Trace& trace() const { return trace_; }
  const std::string& token(std::size_t row) const { return trace_.tokens[row]; }
  Document& document() { return document_; }

  void part(const std::string& title) { document_.blocks.push_back(Heading{1, title}); }
  void step(const std::string& title) {
    document_.blocks.push_back(Heading{2, "Step " + std::to_string(++steps_) + ": " + title});
  }
  void say(const std::string& text) { document_.blocks.push_back(Paragraph{text}); }
  void note(const std::string& text) { document_.blocks.push_back(Note{text}); }
  void calculate(std::vector<Calculations::Line> lines) {
    document_.blocks.push_back(Calculations{std::move(lines)});
  }
  void add(const std::vector<Block>& blocks) {
    document_.blocks.insert(document_.blocks.end(), blocks.begin(), blocks.end());
  }

  /// Rows named by the tokens; columns have no names.
  void rows(const std::string& caption, const reference::Matrix& matrix, int digits = kDigits);
  /// Rows (queries) and columns (keys) named by the tokens.
  void queries_by_keys(const std::string& caption, const reference::Matrix& matrix);
  /// Rows named by their number, from 0.
  void numbered_rows(const std::string& caption, const reference::Matrix& matrix);

  /// "order, 4471 and shipped".
  std::string names_of(const std::vector<std::size_t>& rows) const;

  /// The queries whose calculations are written out: all of a few, otherwise the last, which often sees the most.
  std::vector<std::size_t> queries_to_write_out() const;

 private:
  const reference::Problem& problem_;
  const reference::Trace& trace_;
  Document document_;
  int steps_ = 0;
};

/// The steps, in the order in which they are told. What does not apply is left out.
void tell_inputs(Writer& writer);
void tell_scores(Writer& writer, const reference::HeadTrace& head);
void tell_softmax(Writer& writer, const reference::HeadTrace& head);
void tell_outputs(Writer& writer, const reference::HeadTrace& head);
void tell_tiles(Writer& writer, const reference::HeadTrace& head);
void tell_cache(Writer& writer, const reference::HeadTrace& head);

/// "Causal: …", "Window: …": which keys a query sees, a sentence a rule; empty where it sees every key.
std::vector<std::string> visibility_rules(const AttentionOptions& options);

/// "order, 4471 and shipped".
std::string list_text(const std::vector<std::string>& words);

}  // namespace attn::explain

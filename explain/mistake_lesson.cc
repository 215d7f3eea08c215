#include "explain/mistake_lesson.h"

#include <algorithm>
#include <cmath>

#include "diagnose/catalogue.h"
#include "diagnose/probe.h"
#include "diagnose/worked_mistake.h"
#include "explain/numbers.h"

namespace attn::explain {
namespace {

using diagnose::differ;
using diagnose::Form;
using diagnose::MistakeMade;
using reference::Matrix;

// Rows and columns of a probe's answer that are shown.
constexpr std::int64_t kShownRows = 5, kShownColumns = 7;

// Two tables: the right numbers, and theirs with a mark on each that differs.
void add_tables(const std::string& of, const std::vector<std::string>& names,
                const std::vector<std::string>& columns, const Matrix& right, const Matrix& wrong,
                Document* document) {
  Table good{of + ", right", columns, {}}, bad{of + ", with the mistake (what differs is marked *)", columns, {}};
  for (std::size_t i = 0; i < right.size(); ++i) {
    good.rows.push_back({names[i], {}});
    bad.rows.push_back({names[i], {}});
    for (std::size_t c = 0; c < right[i].size(); ++c) {
      good.rows.back().cells.push_back(number_text(right[i][c]));
      bad.rows.back().cells.push_back((std::isnan(wrong[i][c]) ? "NaN" : number_text(wrong[i][c])) +
                                      (differ(wrong[i][c], right[i][c]) ? "*" : ""));
    }
  }
  document->blocks.emplace_back(std::move(good));
  document->blocks.emplace_back(std::move(bad));
}

void say(const std::string& text, Document* document) { document->blocks.emplace_back(Paragraph{text}); }

void tell_worked(const MistakeMade& made, const reference::Trace& trace, Document* document) {
  say("On the worked example" + (made.note.empty() ? "" : " (" + made.note + ")") + ":", document);
  for (std::size_t h = 0; h < made.weights.size(); ++h) {
    if (!differ(made.weights[h], trace.heads[h].weights)) continue;
    const std::string of = made.weights.size() > 1 ? "Weights of head " + std::to_string(h) : "Weights";
    add_tables(of, trace.tokens, trace.tokens, trace.heads[h].weights, made.weights[h], document);
  }
  add_tables("Outputs", trace.tokens, {}, trace.out, made.out, document);
}

// The rows of a case's answer that differ most early, as a table needs them.
struct ProbeRows {
  std::vector<std::string> names;
  Matrix right, wrong;
};

ProbeRows rows_that_differ(const diagnose::ProbeCase& probe, const std::vector<double>& right,
                           const std::vector<double>& wrong) {
  ProbeRows rows;
  const std::int64_t columns = probe.out_shape[3], shown = std::min(columns, kShownColumns);
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(right.size()) / columns; ++row) {
    const auto part = [&](const std::vector<double>& numbers) {
      return std::vector<double>(numbers.begin() + row * columns, numbers.begin() + row * columns + shown);
    };
    if (static_cast<std::int64_t>(rows.names.size()) == kShownRows) break;
    if (!differ({part(wrong)}, {part(right)})) continue;
    const std::int64_t n = probe.out_shape[2], heads = probe.out_shape[1];
    rows.names.push_back("sequence " + std::to_string(row / n / heads) + ", head " +
                         std::to_string(row / n % heads) + ", row " + std::to_string(row % n));
    rows.right.push_back(part(right));
    rows.wrong.push_back(part(wrong));
  }
  return rows;
}

bool tell_probe(const Mistake& mistake, Document* document) {
  for (const Form& form : diagnose::entry_of(mistake).forms) {
    const Form* forms[] = {&form};
    for (const diagnose::ProbeCase& probe : diagnose::probe_cases()) {
      const auto right = diagnose::answer_of(probe, {}), wrong = diagnose::answer_of(probe, forms);
      if (!wrong || diagnose::is_answer(*wrong, right->out)) continue;
      const ProbeRows rows = rows_that_differ(probe, right->out, wrong->out);
      if (rows.names.empty()) continue;
      say("The worked example can't show it. The probe's case “" + probe.name + "” can" +
              (form.note.empty() ? "" : " (" + form.note + ")") + ": " + probe.about + " Rows that differ first:",
          document);
      add_tables("Outputs", rows.names, {}, rows.right, rows.wrong, document);
      return true;
    }
  }
  return false;
}

}  // namespace

Document mistake_lesson(const Mistake& mistake, const reference::Problem& problem, const reference::Trace& trace) {
  Document document{std::string(mistake.id) + ": " + std::string(mistake.name), {}};
  say(std::string(mistake.what), &document);
  say("What to do: " + std::string(mistake.fix), &document);
  if (const auto made = diagnose::make_mistake(mistake, problem, trace)) {
    tell_worked(*made, trace, &document);
  } else if (!tell_probe(mistake, &document)) {
    say("It makes no fixed numbers: they differ from run to run, or from machine to machine. attn probe finds it "
        "by that.",
        &document);
  }
  return document;
}

Document catalogue_lesson(const reference::Problem& problem, const reference::Trace& trace) {
  Document document{"Known mistakes in attention", {}};
  say("What attn check and attn probe name, each with right and wrong numbers, which were made by running it. This "
      "page is "
      "written by attn explain --mistake all --format markdown.",
      &document);
  for (const Mistake& mistake : mistakes()) {
    Document one = mistake_lesson(mistake, problem, trace);
    document.blocks.emplace_back(Heading{1, one.title});
    for (Block& block : one.blocks) document.blocks.push_back(std::move(block));
  }
  return document;
}

}  // namespace attn::explain

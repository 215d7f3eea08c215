#include "cli/mistake_lesson.h"

#include <algorithm>
#include <cmath>

#include "diagnose/catalogue.h"
#include "diagnose/probe.h"
#include "explain/numbers.h"

namespace attn::cli {
namespace {

using diagnose::Entry;
using diagnose::Form;
using explain::Document;
using reference::Matrix;

// Rows and columns of a probe's answer that are shown.
constexpr std::int64_t kMostRows = 5, kMostColumns = 7;

const Entry& entry_of(const Mistake& mistake) {
  return *std::find_if(diagnose::catalogue().begin(), diagnose::catalogue().end(),
                       [&](const Entry& entry) { return entry.mistake.id == mistake.id; });
}

// A trace's matrix [N, H·D] as numbers [H, N, D].
std::vector<double> by_head(const Matrix& matrix, std::int64_t heads) {
  std::vector<double> numbers;
  const std::size_t dim = matrix.front().size() / static_cast<std::size_t>(heads);
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
    for (const std::vector<double>& row : matrix)
      numbers.insert(numbers.end(), row.begin() + static_cast<std::ptrdiff_t>(h * dim),
                     row.begin() + static_cast<std::ptrdiff_t>((h + 1) * dim));
  }
  return numbers;
}

// The worked example as the recipe takes it.
class Example {
 public:
  Example(const reference::Problem& problem, const reference::Trace& trace)
      : heads_(problem.heads),
        rows_(static_cast<std::int64_t>(trace.tokens.size())),
        q_(by_head(trace.q, heads_)),
        k_(by_head(trace.k, heads_)),
        v_(by_head(trace.v, heads_)),
        inputs_(view(q_), view(k_), view(v_), problem.options) {
    inputs_.scale = trace.scale;
    // Its rows by the identity are its weights.
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (std::int64_t n = 0; n < rows_ * rows_; ++n) identity_.push_back(n % (rows_ + 1) == 0 ? 1 : 0);
    }
  }

  const reference::Inputs& inputs() const { return inputs_; }
  reference::Inputs with_identity() const {
    reference::Inputs inputs(view(q_), view(k_), view(identity_), inputs_.options);
    inputs.scale = inputs_.scale;
    return inputs;
  }

  // [heads][N, D] as a recipe makes them.
  std::vector<Matrix> rows_of(const reference::Inputs& inputs, const diagnose::Recipe& recipe) const {
    diagnose::RowMaker maker(inputs, recipe, {0x1p-53, 0x1p-53});
    std::vector<Matrix> all(static_cast<std::size_t>(heads_));
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (std::int64_t i = 0; i < rows_; ++i) all[static_cast<std::size_t>(h)].push_back(maker.row(0, h, i).out);
    }
    return all;
  }

 private:
  TensorView view(const std::vector<double>& numbers) const {
    return {
        numbers.data(), DType::f64, {1, heads_, rows_, static_cast<std::int64_t>(numbers.size()) / heads_ / rows_}};
  }

  std::int64_t heads_, rows_;
  std::vector<double> q_, k_, v_, identity_;
  reference::Inputs inputs_;
};

bool differ(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) != std::isnan(b);
  return std::fabs(a - b) > 1e-9 * std::max(1.0, std::fabs(b));
}

bool differ(const Matrix& a, const Matrix& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t c = 0; c < a[i].size(); ++c) {
      if (differ(a[i][c], b[i][c])) return true;
    }
  }
  return false;
}

Matrix side_by_side(const std::vector<Matrix>& heads) {
  Matrix joined = heads.front();
  for (std::size_t h = 1; h < heads.size(); ++h) {
    for (std::size_t i = 0; i < joined.size(); ++i)
      joined[i].insert(joined[i].end(), heads[h][i].begin(), heads[h][i].end());
  }
  return joined;
}

// Two tables: the right numbers, and theirs with a mark on each that differs.
void add_tables(const std::string& of, const std::vector<std::string>& names,
                const std::vector<std::string>& columns, const Matrix& right, const Matrix& wrong,
                Document* document) {
  explain::Table good{of + ", right", columns, {}},
      bad{of + ", with the mistake (what differs is marked *)", columns, {}};
  for (std::size_t i = 0; i < right.size(); ++i) {
    good.rows.push_back({names[i], {}});
    bad.rows.push_back({names[i], {}});
    for (std::size_t c = 0; c < right[i].size(); ++c) {
      good.rows.back().cells.push_back(explain::number_text(right[i][c]));
      bad.rows.back().cells.push_back((std::isnan(wrong[i][c]) ? "NaN" : explain::number_text(wrong[i][c])) +
                                      (differ(wrong[i][c], right[i][c]) ? "*" : ""));
    }
  }
  document->blocks.emplace_back(std::move(good));
  document->blocks.emplace_back(std::move(bad));
}

void say(const std::string& text, Document* document) { document->blocks.emplace_back(explain::Paragraph{text}); }

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
  const std::int64_t columns = probe.out_shape[3], shown = std::min(columns, kMostColumns);
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(right.size()) / columns; ++row) {
    const auto part = [&](const std::vector<double>& numbers) {
      return std::vector<double>(numbers.begin() + row * columns, numbers.begin() + row * columns + shown);
    };
    if (static_cast<std::int64_t>(rows.names.size()) == kMostRows) break;
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
  for (const Form& form : entry_of(mistake).forms) {
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

std::optional<MistakeMade> make_mistake(const Mistake& mistake, const reference::Problem& problem,
                                        const reference::Trace& trace) {
  const Example example(problem, trace);
  for (const Form& form : entry_of(mistake).forms) {
    if (form.around != diagnose::Around::nothing) continue;
    reference::Inputs inputs = example.inputs();
    diagnose::Recipe recipe;
    if (form.change_inputs && !form.change_inputs(&inputs)) continue;
    if (form.change_recipe && !form.change_recipe(inputs, &recipe)) continue;
    MistakeMade made{form.note, side_by_side(example.rows_of(inputs, recipe)), {}};
    if (!differ(made.out, trace.out)) continue;
    if (!form.change_inputs && !recipe.merges_without_transpose && !recipe.attends_across_heads)
      made.weights = example.rows_of(example.with_identity(), recipe);
    return made;
  }
  return std::nullopt;
}

explain::Document mistake_lesson(const Mistake& mistake, const reference::Problem& problem,
                                 const reference::Trace& trace) {
  Document document{std::string(mistake.id) + ": " + std::string(mistake.name), {}};
  say(std::string(mistake.what), &document);
  say("What to do: " + std::string(mistake.fix), &document);
  if (const auto made = make_mistake(mistake, problem, trace)) {
    tell_worked(*made, trace, &document);
  } else if (!tell_probe(mistake, &document)) {
    say("It makes no fixed numbers: they differ from run to run, or from machine to machine. attn probe finds it "
        "by that.",
        &document);
  }
  return document;
}

explain::Document catalogue_lesson(const reference::Problem& problem, const reference::Trace& trace) {
  Document document{"Known mistakes in attention", {}};
  say("What attn check and attn probe name, each with right and wrong numbers, which were made by running it. This "
      "page is "
      "written by attn explain --mistake all --format markdown.",
      &document);
  for (const Mistake& mistake : mistakes()) {
    Document one = mistake_lesson(mistake, problem, trace);
    document.blocks.emplace_back(explain::Heading{1, one.title});
    for (explain::Block& block : one.blocks) document.blocks.push_back(std::move(block));
  }
  return document;
}

}  // namespace attn::cli

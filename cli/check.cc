// attn check: is an answer right, and if not, which mistake is it?
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/diagnose.h"
#include "cli/numbers.h"
#include "cli/problem.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* kFooter = R"(
Exit code 0: right; 1: wrong; 2: wrong use. Every row is compared with attention in float64; the worst and some others are held
to the bound.

Example:
  attn check --q examples/by-hand.safetensors:q --k examples/by-hand.safetensors:k \
    --v examples/by-hand.safetensors:v --causal --out examples/by-hand-out.npy)";

struct CheckFlags {
  ProblemFlags problem;
  std::string theirs, tolerance, weights, lse;
  bool as_json = false;
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string place(const OutPlace& where) {
  return "sequence " + std::to_string(where.batch) + ", head " + std::to_string(where.head) + ", row " +
         std::to_string(where.row) + ", column " + std::to_string(where.column);
}

std::string names_of(const Explanation& explanation) {
  std::string names;
  for (const std::string& id : explanation.ids) names += (names.empty() ? "" : " and ") + id;
  return names;
}

void print_explanation(const Explanation& explanation) {
  std::cout << "\n  " << names_of(explanation) << ": ";
  for (std::size_t i = 0; i < explanation.ids.size(); ++i)
    std::cout << (i ? "; and " : "") << find_mistake(explanation.ids[i])->name;
  if (!explanation.note.empty()) std::cout << " (" << explanation.note << ")";
  std::cout << "; largest difference " << number(explanation.max_error) << "\n";
  for (const std::string& id : explanation.ids)
    std::cout << "    " << find_mistake(id)->what << " " << find_mistake(id)->fix << '\n';
}

void print_scale(const Diagnosis& diagnosis, double asked) {
  const std::string scale = number(*diagnosis.fitted_scale), formula = diagnosis.fitted_formula;
  std::cout << "\nTheir scale is " << scale << (formula.empty() || formula == scale ? "" : " = " + formula) << "; "
            << number(asked) << " was expected.\n";
}

void print_wrong(const Diagnosis& diagnosis, double scale) {
  std::cout << "wrong: by " << number(diagnosis.max_error) << " at " << place(diagnosis.where) << ", where "
            << number(diagnosis.bound) << " is allowed\n";
  for (const std::string& sentence : diagnosis.patterns) std::cout << sentence << '\n';
  if (!diagnosis.explanations.empty()) {
    const bool several = diagnosis.explanations.size() > 1;
    std::cout << (several ? "\nEach of these gives the same numbers as theirs; these inputs can't tell them apart, "
                            "attn probe can:\n"
                          : "\nEqual to what you get with this mistake:\n");
    for (const Explanation& explanation : diagnosis.explanations) print_explanation(explanation);
  }
  if (diagnosis.fitted_scale) print_scale(diagnosis, scale);
  if (diagnosis.verdict != Verdict::unexplained) return;
  std::cout << "\nNo known mistake explains it.";
  if (diagnosis.closest && diagnosis.closest->max_error < diagnosis.max_error / 2) {
    std::cout << " The closest is " << names_of(*diagnosis.closest) << ", which is still off by "
              << number(diagnosis.closest->max_error) << '.';
  }
  std::cout << '\n';
}

void print_right(const Diagnosis& diagnosis) {
  if (diagnosis.rows == 0) {
    std::cout << "right: there is no row to compare\n";
    return;
  }
  std::cout << "right: the largest error beside its bound is " << number(diagnosis.max_error) << ", where "
            << number(diagnosis.bound) << " is allowed, at " << place(diagnosis.where) << '\n';
  if (!diagnosis.precision.empty())
    std::cout << "Its rounding is that of " << diagnosis.precision << " or finer.\n";
  for (const std::string& sentence : diagnosis.patterns) std::cout << sentence << '\n';
}

void print_text(const Diagnosis& diagnosis, double scale) {
  diagnosis.verdict == Verdict::right ? print_right(diagnosis) : print_wrong(diagnosis, scale);
  if (diagnosis.rows == 0) return;
  std::cout << '\n'
            << counted(diagnosis.rows, "row") << " compared, " << diagnosis.rows_judged << " held to the bound";
  if (diagnosis.verdict != Verdict::right) std::cout << ", mistakes held against " << diagnosis.rows_explained;
  std::cout << ". Mistakes that can't be seen in the rows looked at:";
  for (const std::string& id : diagnosis.invisible) std::cout << ' ' << id;
  std::cout << '\n';
}

ordered_json json_of(const Explanation& explanation) {
  return {{"ids", explanation.ids}, {"max_error", json_number(explanation.max_error)}, {"note", explanation.note}};
}

void print_json(const Diagnosis& diagnosis) {
  constexpr const char* kVerdicts[] = {"right", "wrong", "unexplained"};
  ordered_json explanations = ordered_json::array();
  for (const Explanation& explanation : diagnosis.explanations) explanations.push_back(json_of(explanation));
  ordered_json json = {{"verdict", kVerdicts[static_cast<int>(diagnosis.verdict)]},
                       {"max_error", json_number(diagnosis.max_error)},
                       {"bound", json_number(diagnosis.bound)},
                       {"where",
                        {{"batch", diagnosis.where.batch},
                         {"head", diagnosis.where.head},
                         {"row", diagnosis.where.row},
                         {"column", diagnosis.where.column}}},
                       {"rows", diagnosis.rows},
                       {"rows_differing", diagnosis.rows_differing},
                       {"patterns", diagnosis.patterns},
                       {"explanations", std::move(explanations)},
                       {"closest", nullptr},
                       {"fitted_scale", nullptr},
                       {"fitted_formula", diagnosis.fitted_formula},
                       {"invisible", diagnosis.invisible},
                       {"precision", diagnosis.precision},
                       {"rows_judged", diagnosis.rows_judged},
                       {"rows_explained", diagnosis.rows_explained}};
  if (diagnosis.closest) json["closest"] = json_of(*diagnosis.closest);
  if (diagnosis.fitted_scale) json["fitted_scale"] = json_number(*diagnosis.fitted_scale);
  std::cout << json.dump() << '\n';
}

// Theirs lies as q does.
Input read_theirs(const char* flag, const std::string& argument, const Problem& problem) {
  Input input = read_attention_input(flag, argument);
  if (problem.rows_before_heads && input.view.rank == kMaxRank)
    input.view = with_heads_and_rows_swapped(input.view);
  return input;
}

void run_check(const CheckFlags& flags) {
  if (flags.theirs.empty()) throw Failure{2, "--out: not given; name the answer to check, as in --out theirs.npy"};
  const Problem problem = read_problem(flags.problem);
  const Input theirs = read_theirs("--out", flags.theirs, problem);
  CheckOptions options;
  if (!flags.tolerance.empty()) {
    options.tolerance = parse_real("--tolerance", flags.tolerance);
    if (*options.tolerance < 0)
      throw Failure{2, "--tolerance: " + flags.tolerance + " is below 0; give a difference"};
  }
  std::optional<Input> weights, lse;
  if (!flags.weights.empty())
    options.weights = (weights = read_attention_input("--their-weights", flags.weights))->view;
  if (!flags.lse.empty()) options.lse = (lse = read_input("--their-lse", flags.lse))->view;

  Diagnosis diagnosis;
  require(attn::check(problem.q.view, problem.k.view, problem.v.view, theirs.view, problem.options(), options,
                      &diagnosis));
  const double dim = static_cast<double>(problem.q.view.shape[static_cast<std::size_t>(problem.q.view.rank - 1)]);
  flags.as_json ? print_json(diagnosis)
                : print_text(diagnosis, problem.options().scale.value_or(1 / std::sqrt(dim)));
  if (diagnosis.verdict != Verdict::right) throw Answer{1};
}

}  // namespace

void add_check(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("check", "Is an answer right, and if not, which mistake is it?");
  const auto flags = std::make_shared<CheckFlags>();
  flags->problem.add_to(*verb);
  verb->add_option("--out", flags->theirs, "The answer to check, of out's shape")->type_name("FILE[:NAME]");
  verb->add_option("--tolerance", flags->tolerance, "Allow this difference everywhere, instead of the bound")
      ->type_name("X");
  verb->add_option("--their-weights", flags->weights,
                   "Their weights [N, M], …: says on which side the mistake lies")
      ->type_name("FILE[:NAME]");
  verb->add_option("--their-lse", flags->lse, "Their log-sum-exps [N], …")->type_name("FILE[:NAME]");
  verb->add_flag("--json", flags->as_json, "Print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { run_check(*flags); });
}

}  // namespace attn::cli

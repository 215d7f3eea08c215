// attn check: is an answer right, and if not, which mistake is it?
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "attn/diagnose.h"
#include "cli/numbers.h"
#include "cli/problem.h"
#include "cli/verbs.h"
#include "explain/check_report.h"

namespace attn::cli {
namespace {

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
  std::cout << (flags.as_json ? explain::as_json(diagnosis)
                              : explain::as_text(diagnosis, problem.options().scale.value_or(1 / std::sqrt(dim))));
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

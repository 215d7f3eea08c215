// attn run: exact attention on files.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "attn/attention.h"
#include "cli/numbers.h"
#include "cli/problem.h"
#include "cli/progress.h"
#include "cli/run_outputs.h"
#include "cli/run_report.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

constexpr const char* kFooter = R"(
-o and the others write .npy, .npz or .safetensors, by extension; -o - writes .npy to stdout.
Files are memory-mapped; a file has its name only when it is complete.

Example:
  attn run --q examples/by-hand.safetensors:q --k examples/by-hand.safetensors:k \
    --v examples/by-hand.safetensors:v --causal -o out.npy)";

struct RunFlags {
  ProblemFlags problem;
  std::string out, lse, weights;
  std::string rows, head;
  bool plan = false;
  bool as_json = false;
};

void check_combination(const RunFlags& flags) {
  if (flags.out.empty() && !flags.plan) throw Failure{2, "-o: not given; name the file to write, as in -o out.npy"};
  if (flags.out == "-" && flags.as_json && !flags.plan) {
    throw Failure{2, "--json: -o - needs stdout for the tensor; write to a file, or leave --json out"};
  }
  if (flags.weights == "-" || flags.lse == "-") {
    throw Failure{2, "--lse, --weights: \"-\" is for -o alone; name a file"};
  }
  if (flags.weights.empty() && !(flags.rows.empty() && flags.head.empty())) {
    throw Failure{
        2, std::string(flags.rows.empty() ? "--head" : "--rows") + ": chooses from --weights; give --weights FILE"};
  }
}

// The result's shape in a file with as many dimensions as q: its last `rank` sizes.
std::vector<std::int64_t> last(std::vector<std::int64_t> sizes, int rank) {
  return {sizes.end() - rank, sizes.end()};
}

OutputView create_out(const Problem& problem, const Destination& destination, RunOutputs* outputs) {
  std::vector<std::int64_t> shape = {problem.batch(), problem.query_heads(), problem.queries(),
                                     problem.value_dim()};
  if (problem.rows_before_heads) std::swap(shape[1], shape[2]);
  const OutputView view = outputs->create(destination, problem.out_dtype, last(shape, problem.q.view.rank), "out");
  return problem.rows_before_heads ? with_heads_and_rows_swapped(view) : view;
}

OutputView create_lse(const Problem& problem, const Destination& destination, RunOutputs* outputs) {
  const std::vector<std::int64_t> shape = {problem.batch(), problem.query_heads(), problem.queries()};
  return outputs->create(destination, problem.compute, last(shape, problem.q.view.rank - 1), "lse");
}

/// The rows and heads whose weights are wanted; empty means all.
struct Chosen {
  std::vector<std::int64_t> rows, heads;
};

void require_in_range(const char* flag, const std::vector<std::int64_t>& chosen, std::int64_t size,
                      const char* what) {
  for (const std::int64_t index : chosen) {
    if (index < size) continue;
    throw Failure{2, std::string(flag) + ": " + std::to_string(index) + ", but q has " + counted(size, what) +
                         ", counted from 0"};
  }
}

Chosen choose(const RunFlags& flags, const Problem& problem) {
  Chosen chosen;
  if (!flags.rows.empty()) chosen.rows = parse_whole_list("--rows", flags.rows);
  if (!flags.head.empty()) chosen.heads = parse_whole_list("--head", flags.head);
  require_in_range("--rows", chosen.rows, problem.queries(), "row");
  require_in_range("--head", chosen.heads, problem.query_heads(), "head");
  return chosen;
}

std::vector<std::int64_t> shape_of_weights(const Problem& problem, const Chosen& chosen) {
  const auto count = [](const std::vector<std::int64_t>& some, std::int64_t all) {
    return some.empty() ? all : static_cast<std::int64_t>(some.size());
  };
  return {problem.batch(), count(chosen.heads, problem.query_heads()), count(chosen.rows, problem.queries()),
          problem.keys()};
}

OutputView create_weights(const Problem& problem, const Chosen& chosen, const Destination& destination,
                          RunOutputs* outputs) {
  const std::vector<std::int64_t> shape = shape_of_weights(problem, chosen);
  return outputs->create(destination, problem.compute, last(shape, problem.q.view.rank), "weights");
}

// The table that --weights asks for, as stored. A double: of sizes that only a plan can take.
std::optional<double> bytes_of_weights(const RunFlags& flags, const Problem& problem, const Chosen& chosen) {
  if (flags.weights.empty()) return std::nullopt;
  auto bytes = static_cast<double>(size_of(problem.compute));
  for (const std::int64_t size : shape_of_weights(problem, chosen)) bytes *= static_cast<double>(size);
  return bytes;
}

// Returns the seconds it took.
double compute(const Problem& problem, const Plan& plan, const Chosen& chosen, const OutputView& out,
               const std::optional<OutputView>& lse, const std::optional<OutputView>& weights) {
  AttentionOptions options = problem.options();
  ProgressExecutor progress(*options.executor, plan.tasks);
  options.executor = &progress;

  const auto started = std::chrono::steady_clock::now();
  require(forward(problem.q.view, problem.k.view, problem.v.view, out, options, lse));
  if (weights) require(attn::weights(problem.q.view, problem.k.view, *weights, options, chosen.rows, chosen.heads));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

void run_attention(const RunFlags& flags) {
  check_combination(flags);
  const Problem problem = read_problem(flags.problem);
  const std::vector<Destination> destinations = {
      {"-o", flags.out == "-" ? "" : flags.out}, {"--lse", flags.lse}, {"--weights", flags.weights}};
  check_destinations(destinations, problem.files);

  Plan plan;
  require(attn::plan(problem.q.view, problem.k.view, problem.v.view, problem.options(), &plan));
  const Chosen chosen = choose(flags, problem);
  if (flags.plan) return print_plan(plan, bytes_of_weights(flags, problem, chosen), flags.as_json);

  RunOutputs outputs;
  const OutputView out = create_out(problem, {"-o", flags.out}, &outputs);
  std::optional<OutputView> lse, weights;
  if (!flags.lse.empty()) lse = create_lse(problem, destinations[1], &outputs);
  if (!flags.weights.empty()) weights = create_weights(problem, chosen, destinations[2], &outputs);

  const double seconds = compute(problem, plan, chosen, out, lse, weights);
  outputs.commit();
  if (flags.out != "-") print_summary(plan, outputs.written(), seconds, flags.as_json);
}

}  // namespace

void add_run(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("run", "Exact attention on tensor files");
  const auto flags = std::make_shared<RunFlags>();
  flags->problem.add_to(*verb);
  flags->problem.add_compute_to(*verb);
  verb->add_option("-o,--out", flags->out, "Where the result goes; - is stdout")->type_name("FILE");
  verb->add_option("--lse", flags->lse, "Also write log Σ exp(score) of every row")->type_name("FILE");
  verb->add_option("--weights", flags->weights, "Also write the attention weights")->type_name("FILE");
  verb->add_option("--rows", flags->rows, "Weights of these rows alone, as in 5,17")->type_name("LIST");
  verb->add_option("--head", flags->head, "Weights of these query heads alone, as in 2")->type_name("LIST");
  verb->add_flag("--plan", flags->plan, "Say what would be done; compute and write nothing");
  verb->add_flag("--json", flags->as_json, "Print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { run_attention(*flags); });
}

}  // namespace attn::cli

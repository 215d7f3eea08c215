// The attention problem that a command line states: q, k, v, how they lie, and the options.
#include "cli/problem.h"

#include <algorithm>
#include <array>

#include <CLI/CLI.hpp>

#include "attn/isa.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

// The size of dimension d of [B, H, N, D].
std::int64_t size(const TensorView& view, int d) {
  const int own = d - (kMaxRank - view.rank);
  return own < 0 ? 1 : view.shape[own];
}

bool swaps_rows_and_heads(const std::string& layout) {
  if (layout.empty() || layout == "bhsd") return false;
  if (layout == "bshd") return true;
  throw Failure{
      2, "--layout: \"" + layout + "\" is none; give bhsd ([B, H, N, D], the default) or bshd ([B, N, H, D])"};
}

void swap_rows_and_heads(const char* flag, Input* input) {
  if (input->view.rank != kMaxRank) {
    throw Failure{2, std::string(flag) + ": has " + std::to_string(input->view.rank) +
                         " dimensions, but --layout bshd is [B, N, H, D]; leave --layout out for fewer"};
  }
  input->view = with_heads_and_rows_swapped(input->view);
}

// Without --compute, f64 is computed in f64, and everything else in f32.
DType choose_compute(const std::string& compute, const std::array<DType, 3>& dtypes) {
  if (compute == "f32" || compute == "bf16") return DType::f32;
  if (compute == "f64") return DType::f64;
  if (!compute.empty()) throw Failure{2, "--compute: \"" + compute + "\" is none; give f32, bf16 or f64"};

  const auto doubles = std::count(dtypes.begin(), dtypes.end(), DType::f64);
  if (doubles != 0 && doubles != 3) {
    throw Failure{2, std::string("--q, --k, --v: hold ") + name_of(dtypes[0]) + ", " + name_of(dtypes[1]) +
                         " and " + name_of(dtypes[2]) +
                         ", but f64 goes with f64 only; --compute f64 or --compute f32 converts"};
  }
  return doubles == 3 ? DType::f64 : DType::f32;
}

void check_bf16(const std::string& compute) {
  if (compute != "bf16" || bf16_products_available()) return;
  throw Failure{2, std::string("--compute bf16: ") + name_of(current_isa()) +
                       " on this machine has no 16-bit products (AMX or AVX-512 BF16); leave it out"};
}

// f16 and bf16 stay as they are where f32 computes: the library widens them as it goes.
void convert_for(DType compute, Input* input) {
  if (compute == DType::f64 || input->view.dtype == DType::f64) *input = converted(*input, compute);
}

}  // namespace

void ProblemFlags::add_to(CLI::App& verb) {
  verb.add_option("--q", q, "Queries [N, D], [H, N, D] or [B, H, N, D]")->type_name("FILE[:NAME]");
  verb.add_option("--k", k, "Keys [M, D], …; query heads are a multiple of key heads")->type_name("FILE[:NAME]");
  verb.add_option("--v", v, "Values [M, Dv], …")->type_name("FILE[:NAME]");
  verb.add_option("--layout", layout, "bshd reads and writes [B, N, H, D]; default bhsd, [B, H, N, D]")
      ->type_name("LAYOUT");
  attention.add_to(verb);
}

void ProblemFlags::add_compute_to(CLI::App& verb) {
  verb.add_option(
          "--compute", compute,
          "f32, f64 (writes f64), or bf16: rounds q, k, v and weights to bf16, much faster where the processor "
          "has AMX; default f64 for f64 tensors, f32 for all others")
      ->type_name("TYPE");
}

std::int64_t Problem::batch() const { return size(q.view, 0); }
std::int64_t Problem::query_heads() const { return size(q.view, 1); }
std::int64_t Problem::queries() const { return size(q.view, 2); }
std::int64_t Problem::keys() const { return size(k.view, 2); }
std::int64_t Problem::value_dim() const { return size(v.view, 3); }

Problem read_problem(const ProblemFlags& flags) {
  Problem problem;
  problem.rows_before_heads = swaps_rows_and_heads(flags.layout);
  problem.q = read_attention_input("--q", flags.q);
  problem.k = read_attention_input("--k", flags.k);
  problem.v = read_attention_input("--v", flags.v);
  problem.files = {problem.q.file, problem.k.file, problem.v.file};

  const DType q_dtype = problem.q.view.dtype;
  problem.compute = choose_compute(flags.compute, {q_dtype, problem.k.view.dtype, problem.v.view.dtype});
  const bool narrowed = q_dtype == DType::f64 && problem.compute == DType::f32;
  problem.out_dtype = problem.compute == DType::f64 || narrowed ? problem.compute : q_dtype;

  if (problem.rows_before_heads) {
    swap_rows_and_heads("--q", &problem.q);
    swap_rows_and_heads("--k", &problem.k);
    swap_rows_and_heads("--v", &problem.v);
  }
  for (Input* input : {&problem.q, &problem.k, &problem.v}) convert_for(problem.compute, input);

  check_bf16(flags.compute);
  problem.setup = set_up(flags.attention, problem.batch(), problem.query_heads(), problem.compute);
  problem.setup.options.bf16_products = flags.compute == "bf16";
  check_sequences(problem.options(), problem.queries(), problem.keys());
  problem.files.insert(problem.files.end(), problem.setup.files.begin(), problem.setup.files.end());
  return problem;
}

}  // namespace attn::cli

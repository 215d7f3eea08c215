// check → plan → run, and nothing else.
#include "attn/attention.h"

#include "attn/numerics.h"
#include "src/arithmetic/float_environment.h"
#include "src/check.h"
#include "src/check_outputs.h"
#include "src/plan/tile_plan.h"
#include "src/run/run.h"

namespace attn {
namespace {

void describe_path(const Problem& problem, const TilePlan& tiles, Plan* plan) {
  plan->isa = current_isa();
  plan->compute = problem.bf16_products ? DType::bf16 : problem.compute;
  if (plan->isa == Isa::scalar) {
    plan->path = "specification";
    plan->reason = "no SIMD target was chosen, so every row runs by the scalar specification";
    plan->tasks = problem.batch * problem.query_heads * problem.longest_queries;
    plan->query_tile_rows = 1;
    return;
  }
  plan->path = "tiles";
  plan->tasks = tiles.tasks;
  plan->query_tile_rows = tiles.tile_rows;
  plan->reason = "every query tile runs over the key blocks that its rows see, in online softmax";
}

}  // namespace

Status plan(const TensorView& q, const TensorView& k, const TensorView& v, const AttentionOptions& options,
            Plan* plan) {
  const DefaultFloatEnvironment environment;
  Problem problem;
  ATTN_RETURN_IF_ERROR(check_problem({q, &k, &v}, options, &problem));
  *plan = Plan{};
  const TilePlan tiles = plan_tiles(problem);
  describe_path(problem, tiles, plan);
  plan->threads = problem.executor->threads();
  plan->key_block = kBlockKeys;
  plan->scratch_bytes = scratch_bytes_of(problem);
  count_work(problem, tiles, plan);
  return {};
}

Status forward(const TensorView& q, const TensorView& k, const TensorView& v, const OutputView& out,
               const AttentionOptions& options, const std::optional<OutputView>& lse) {
  const DefaultFloatEnvironment environment;  // factors are rounded on this thread, too
  Problem problem;
  Destination to;
  ATTN_RETURN_IF_ERROR(check_problem({q, &k, &v}, options, &problem));
  ATTN_RETURN_IF_ERROR(check_results(out, lse, problem, &to));
  return run(problem, to);
}

Status forward_state(const TensorView& q, const TensorView& k, const TensorView& v, const State& state,
                     const AttentionOptions& options) {
  const DefaultFloatEnvironment environment;  // factors are rounded on this thread, too
  Problem problem;
  Destination to;
  ATTN_RETURN_IF_ERROR(check_problem({q, &k, &v}, options, &problem));
  ATTN_RETURN_IF_ERROR(check_state_of(state, problem, &to));
  return run(problem, to);
}

}  // namespace attn

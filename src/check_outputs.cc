#include "src/check_outputs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/check_views.h"
#include "src/overlap.h"

namespace attn {

View4 readable(const OutputView4& view) { return {view.data, view.dtype, view.shape, view.strides, view.present_}; }

Status check_output(std::string_view name, const OutputView& view, const OutputShape& shape, DType compute,
                    OutputView4* output) {
  ATTN_RETURN_IF_ERROR(check_memory(name, view));
  if ((view.dtype == DType::f64) != (compute == DType::f64)) {
    return error(name, ": dtype ", name_of(view.dtype), ", but the inputs are computed in ", name_of(compute),
                 "; f64 goes with f64 only");
  }
  if (!is_float(view.dtype)) return error(name, ": dtype bool; f32, f16 or bf16 is needed");
  const bool has_columns = shape[3] != kNoColumns;
  const int rank = has_columns ? 4 : 3;
  if (view.rank < 1 || view.rank > rank) {
    return error(name, ": ", view.rank, " dimensions; 1 to ", rank, " are possible");
  }
  *output = aligned_right<std::byte>(view, rank);
  const OutputShape wanted{shape[0], shape[1], shape[2], has_columns ? shape[3] : 1};
  if (output->shape != wanted) {
    return error(name, ": shape ", list_of(shape_of(view)), ", but ", list_of(std::span(wanted.data(), rank)),
                 " is written");
  }
  if (overlaps_itself(readable(*output))) {
    return error(name, ": elements of the view overlap each other; every element written needs memory of its own");
  }
  return {};
}

Status check_disjoint(std::string_view name, const OutputView4& output, std::string_view other_name,
                      const View4& other) {
  if (!other.present() || !overlap(readable(output), other)) return {};
  return error(name, ": shares memory with ", other_name, "; an output needs memory of its own");
}

Status check_memory_of(std::string_view name, const OutputView4& output, const Problem& p) {
  const std::pair<const char*, const View4*> inputs[] = {{"q", &p.q},        {"k", &p.k},       {"v", &p.v},
                                                         {"mask", &p.mask},  {"bias", &p.bias}, {"alibi", &p.alibi},
                                                         {"sinks", &p.sinks}};
  for (const auto& [input_name, input] : inputs) {
    ATTN_RETURN_IF_ERROR(check_disjoint(name, output, input_name, *input));
  }
  return {};
}

namespace {

OutputShape shape_of_results(const Problem& p, std::int64_t columns) {
  return {p.q.shape[0], p.query_heads, p.q.shape[2], columns};
}

}  // namespace

Status check_results(const OutputView& out, const std::optional<OutputView>& lse, const Problem& p,
                     Destination* to) {
  ATTN_RETURN_IF_ERROR(check_output("out", out, shape_of_results(p, p.value_dim), p.compute, &to->out));
  ATTN_RETURN_IF_ERROR(check_memory_of("out", to->out, p));
  if (!lse) return {};
  ATTN_RETURN_IF_ERROR(check_output("lse", *lse, shape_of_results(p, kNoColumns), p.compute, &to->lse));
  ATTN_RETURN_IF_ERROR(check_memory_of("lse", to->lse, p));
  return check_disjoint("lse", to->lse, "out", readable(to->out));
}

Status check_state(std::string_view name, const State& state, Destination* parts) {
  const auto named = [name](std::string_view part) { return std::string(name).append(part); };
  if (state.out.dtype != DType::f32 && state.out.dtype != DType::f64) {
    return error(name, ".out: dtype ", name_of(state.out.dtype), "; states are f32, or f64 where q is f64");
  }
  ATTN_RETURN_IF_ERROR(check_rank(named(".out"), state.out));
  const OutputView4 out = aligned_right<std::byte>(state.out, 4);
  if (out.shape[3] < 1) return error(name, ".out: head dim 0; Dv is at least 1");
  ATTN_RETURN_IF_ERROR(check_output(named(".out"), state.out, out.shape, state.out.dtype, &parts->out));
  const OutputShape rows{out.shape[0], out.shape[1], out.shape[2], kNoColumns};
  for (const auto& [part, view, target] :
       {std::tuple{".max", &state.max, &parts->max}, {".sum", &state.sum, &parts->sum}}) {
    if (view->dtype != state.out.dtype) {
      return error(name, part, ": dtype ", name_of(view->dtype), ", but out has ", name_of(state.out.dtype),
                   "; the parts of "
                   "a state share a dtype");
    }
    ATTN_RETURN_IF_ERROR(check_output(named(part), *view, rows, state.out.dtype, target));
  }
  ATTN_RETURN_IF_ERROR(check_disjoint(named(".max"), parts->max, named(".out"), readable(parts->out)));
  ATTN_RETURN_IF_ERROR(check_disjoint(named(".sum"), parts->sum, named(".out"), readable(parts->out)));
  return check_disjoint(named(".sum"), parts->sum, named(".max"), readable(parts->max));
}

Status check_state_of(const State& state, const Problem& p, Destination* parts) {
  if (p.sinks.present()) return error("sinks: given to a partial result; sink logits join once, in finish_state");
  ATTN_RETURN_IF_ERROR(check_state("state", state, parts));
  OutputView4 out;
  ATTN_RETURN_IF_ERROR(check_output("state.out", state.out, shape_of_results(p, p.value_dim), p.compute, &out));
  for (const auto& [name, part] :
       {std::pair{"state.out", &parts->out}, {"state.max", &parts->max}, {"state.sum", &parts->sum}}) {
    ATTN_RETURN_IF_ERROR(check_memory_of(name, *part, p));
  }
  return {};
}

}  // namespace attn

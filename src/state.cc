// Partial results: states merged and finished, finished results merged.
#include "src/state.h"

#include <vector>

#include "attn/attention.h"
#include "src/arithmetic/float_environment.h"
#include "src/check_outputs.h"
#include "src/check_views.h"
#include "src/elements.h"
#include "src/run/store_rows.h"

namespace attn {
namespace {

template <class T>
T load_number(const View4& view, const RowPlace& place) {
  return load_element<T>(view.at(place.batch, place.head, place.row), view.dtype);
}

template <class T>
void load_row(const View4& view, const RowPlace& place, std::vector<T>* row) {
  for (std::int64_t c = 0; c < view.shape[3]; ++c) {
    (*row)[c] = load_element<T>(view.at(place.batch, place.head, place.row, c), view.dtype);
  }
}

// Calls visit(place) for every row of a [B, H, N, D] view.
template <class Byte, class Visit>
void for_each_row(const BasicView4<Byte>& view, Visit visit) {
  const DefaultFloatEnvironment environment;
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t h = 0; h < view.shape[1]; ++h) {
      for (std::int64_t i = 0; i < view.shape[2]; ++i) visit(RowPlace{b, h, i});
    }
  }
}

template <class T>
void merge_all(const Destination& into, const Destination& next) {
  const std::int64_t columns = into.out.shape[3];
  std::vector<T> out(columns), next_out(columns);
  const View4 no_sinks;
  for_each_row(into.out, [&](const RowPlace& place) {
    T max = load_number<T>(readable(into.max), place), sum = load_number<T>(readable(into.sum), place);
    load_row(readable(into.out), place, &out);
    load_row(readable(next.out), place, &next_out);
    merge_row(&max, &sum, out.data(), load_number<T>(readable(next.max), place),
              load_number<T>(readable(next.sum), place), next_out.data(), columns);
    store_row(no_sinks, into, place, max, sum, out.data());
  });
}

template <class T>
void finish_all(const Destination& state, const View4& sinks, const Destination& to) {
  std::vector<T> out(state.out.shape[3]);
  for_each_row(state.out, [&](const RowPlace& place) {
    load_row(readable(state.out), place, &out);
    store_row(sinks, to, place, load_number<T>(readable(state.max), place),
              load_number<T>(readable(state.sum), place), out.data());
  });
}

Status check_sinks(const std::optional<TensorView>& sinks, const OutputView4& out, View4* result) {
  if (!sinks) return {};
  ATTN_RETURN_IF_ERROR(check_memory("sinks", *sinks));
  if (sinks->rank != 1 || sinks->shape[0] != out.shape[1] || !is_float(sinks->dtype)) {
    return error("sinks: shape ", list_of(shape_of(*sinks)), " of ", name_of(sinks->dtype), ", but there are ",
                 out.shape[1], " query heads; give one float a head");
  }
  if ((sinks->dtype == DType::f64) != (out.dtype == DType::f64)) {
    return error("sinks: dtype ", name_of(sinks->dtype), ", but the state has ", name_of(out.dtype),
                 "; f64 goes with f64 only");
  }
  *result = aligned_right<const std::byte>(*sinks, 2);
  return {};
}

// The parts of merge(), checked.
struct Parts {
  std::vector<View4> outs, lses;
};

Status check_part(std::string_view name, const TensorView& view, int rank, const OutputView4& like, View4* part) {
  ATTN_RETURN_IF_ERROR(check_memory(name, view));
  if (view.rank > rank) return error(name, ": ", view.rank, " dimensions; at most ", rank, " are possible");
  if (!is_float(view.dtype)) return error(name, ": dtype bool; a float dtype is needed");
  *part = aligned_right<const std::byte>(view, rank);
  for (int d = 0; d < rank; ++d) {
    if (part->shape[d] == like.shape[d]) continue;
    return error(name, ": shape ", list_of(shape_of(view)), ", but out has ",
                 list_of(std::span(like.shape.data(), rank)), "; all parts have out's batch, heads and rows");
  }
  return {};
}

Status check_parts(std::span<const TensorView> outs, std::span<const TensorView> lses, const Destination& to,
                   Parts* parts) {
  if (outs.size() != lses.size()) {
    return error("lses: ", lses.size(), " parts, but outs has ", outs.size(), "; every out needs its lse");
  }
  for (std::size_t i = 0; i < outs.size(); ++i) {
    const std::string out_name = "outs[" + std::to_string(i) + "]", lse_name = "lses[" + std::to_string(i) + "]";
    View4 out, lse;
    ATTN_RETURN_IF_ERROR(check_part(out_name, outs[i], 4, to.out, &out));
    ATTN_RETURN_IF_ERROR(check_part(lse_name, lses[i], 3, to.out, &lse));
    ATTN_RETURN_IF_ERROR(check_disjoint("out", to.out, out_name, out));
    ATTN_RETURN_IF_ERROR(check_disjoint("out", to.out, lse_name, lse));
    if (to.lse.present()) {
      ATTN_RETURN_IF_ERROR(check_disjoint("lse", to.lse, out_name, out));
      ATTN_RETURN_IF_ERROR(check_disjoint("lse", to.lse, lse_name, lse));
    }
    parts->outs.push_back(out);
    parts->lses.push_back(lse);
  }
  return {};
}

// In f64, whatever the parts are: Σ 2^((lse_i − max)·log2(e))·out_i, divided in store_row.
void merge_finished_row(const Parts& parts, const Destination& to, const RowPlace& place) {
  const std::int64_t columns = to.out.shape[3];
  double max = kMinusInfinity<double>, sum = 0;
  std::vector<double> out(columns, 0.0), part(columns);
  for (std::size_t i = 0; i < parts.outs.size(); ++i) {
    const double lse = load_number<double>(parts.lses[i], place);
    if (lse == kMinusInfinity<double>) continue;  // saw no key
    load_row(parts.outs[i], place, &part);
    merge_row(&max, &sum, out.data(), lse * kLog2E, 1.0, part.data(), columns);
  }
  store_row(View4{}, to, place, max, sum, out.data());
}

}  // namespace

Status merge_states(const State& into, const State& next) {
  Destination target, source;
  ATTN_RETURN_IF_ERROR(check_state("into", into, &target));
  ATTN_RETURN_IF_ERROR(check_state("next", next, &source));
  if (target.out.shape != source.out.shape || target.out.dtype != source.out.dtype) {
    return error("next.out: shape ", list_of(source.out.shape), " of ", name_of(source.out.dtype),
                 ", but into.out has ", list_of(target.out.shape), " of ", name_of(target.out.dtype),
                 "; both states must be alike");
  }
  for (const OutputView4* part : {&target.out, &target.max, &target.sum}) {
    for (const OutputView4* other : {&source.out, &source.max, &source.sum}) {
      ATTN_RETURN_IF_ERROR(check_disjoint("into", *part, "next", readable(*other)));
    }
  }
  target.out.dtype == DType::f64 ? merge_all<double>(target, source) : merge_all<float>(target, source);
  return {};
}

Status finish_state(const State& state, const OutputView& out, const std::optional<OutputView>& lse,
                    const std::optional<TensorView>& sinks) {
  Destination from, to;
  View4 sink_logits;
  ATTN_RETURN_IF_ERROR(check_state("state", state, &from));
  ATTN_RETURN_IF_ERROR(check_output("out", out, from.out.shape, from.out.dtype, &to.out));
  const OutputShape rows{from.out.shape[0], from.out.shape[1], from.out.shape[2], kNoColumns};
  if (lse) ATTN_RETURN_IF_ERROR(check_output("lse", *lse, rows, from.out.dtype, &to.lse));
  for (const OutputView4* part : {&from.out, &from.max, &from.sum}) {
    ATTN_RETURN_IF_ERROR(check_disjoint("out", to.out, "state", readable(*part)));
    if (lse) ATTN_RETURN_IF_ERROR(check_disjoint("lse", to.lse, "state", readable(*part)));
  }
  if (lse) ATTN_RETURN_IF_ERROR(check_disjoint("lse", to.lse, "out", readable(to.out)));
  ATTN_RETURN_IF_ERROR(check_sinks(sinks, from.out, &sink_logits));
  ATTN_RETURN_IF_ERROR(check_disjoint("out", to.out, "sinks", sink_logits));
  if (lse) ATTN_RETURN_IF_ERROR(check_disjoint("lse", to.lse, "sinks", sink_logits));
  from.out.dtype == DType::f64 ? finish_all<double>(from, sink_logits, to)
                               : finish_all<float>(from, sink_logits, to);
  return {};
}

Status merge(std::span<const TensorView> outs, std::span<const TensorView> lses, const OutputView& out,
             const std::optional<OutputView>& lse) {
  Destination to;
  if (out.rank < 2 || out.rank > 4) {
    return error("out: ", out.rank, " dimensions; [N, D], [heads, N, D] or [batch, heads, N, D] is needed");
  }
  const OutputShape shape = aligned_right<std::byte>(out, 4).shape;
  ATTN_RETURN_IF_ERROR(check_output("out", out, shape, out.dtype == DType::f64 ? DType::f64 : DType::f32, &to.out));
  if (lse) {
    const OutputShape rows{shape[0], shape[1], shape[2], kNoColumns};
    ATTN_RETURN_IF_ERROR(
        check_output("lse", *lse, rows, lse->dtype == DType::f64 ? DType::f64 : DType::f32, &to.lse));
    ATTN_RETURN_IF_ERROR(check_disjoint("lse", to.lse, "out", readable(to.out)));
  }
  Parts parts;
  ATTN_RETURN_IF_ERROR(check_parts(outs, lses, to, &parts));
  for_each_row(to.out, [&](const RowPlace& place) { merge_finished_row(parts, to, place); });
  return {};
}

}  // namespace attn

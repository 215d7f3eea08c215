#include "src/check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "src/arithmetic/constants.h"
#include "src/check_views.h"
#include "src/sentence.h"

namespace attn {
namespace {

Status check_input(std::string_view name, const TensorView& view, View4* result) {
  ATTN_RETURN_IF_ERROR(check_rank(name, view));
  if (!is_float(view.dtype)) return error(name, ": dtype bool; f32, f64, f16 or bf16 is needed");
  ATTN_RETURN_IF_ERROR(check_memory(name, view));
  *result = aligned_right<const std::byte>(view, 4);
  return {};
}

Status check_dtypes(const Problem& p, bool has_values) {
  if (p.cached && p.q.dtype == DType::f64)
    return error("q: dtype f64; attention over a cache is computed in f32: give f32, f16 or bf16");
  if (has_values && p.k.dtype != p.v.dtype) {
    return error("v: dtype ", name_of(p.v.dtype), ", but k has ", name_of(p.k.dtype),
                 "; k and v must share a dtype");
  }
  if ((p.q.dtype == DType::f64) != (p.k.dtype == DType::f64)) {
    return error("k: dtype ", name_of(p.k.dtype), ", but q has ", name_of(p.q.dtype), "; f64 goes with f64 only");
  }
  return {};
}

Status check_bf16_products(const Problem& p) {
  if (p.compute == DType::f64)
    return error("bf16_products: q is f64; give f32, f16 or bf16, or leave bf16_products out");
  if (!bf16_products_available()) {
    return error("bf16_products: ", name_of(current_isa()),
                 " on this machine has no 16-bit products (AMX or AVX-512 BF16); leave bf16_products out");
  }
  return {};
}

Status check_shapes(const Problem& p, bool has_values) {
  const auto& q = p.q.shape;
  const auto& k = p.k.shape;
  const auto& v = p.v.shape;
  const char* keys = p.cached ? "cache" : "k";
  if (k[3] != q[3])
    return error(keys, ": head dim ", k[3], ", but q has ", q[3], "; both are Dk and must be equal");
  if (q[3] < 1) return error("q: head dim 0; Dk is at least 1");
  if (!p.packed() && k[0] != q[0]) {
    return p.cached ? error("q: batch ", q[0], ", but ", k[0], " sequences are given; each needs its queries")
                    : error("k: batch ", k[0], ", but q has ", q[0], "; all tensors share the batch");
  }
  if (k[1] == 0 ? q[1] != 0 : q[1] % k[1] != 0) {
    return error("q: ", q[1], " heads, but ", keys, " has ", k[1],
                 "; query heads must be a multiple of key/value heads");
  }
  if (!has_values) return {};
  if (v[3] < 1) return error("v: head dim 0; Dv is at least 1");
  for (int d : {0, 1, 2}) {
    static constexpr const char* kNames[] = {"batch", "heads", "keys"};
    if (v[d] != k[d]) {
      return error("v: ", kNames[d], " ", v[d], ", but k has ", k[d], "; every key needs its value");
    }
  }
  return {};
}

Status check_lengths(std::string_view name, std::span<const std::int64_t> lengths, std::int64_t batch,
                     std::int64_t most) {
  if (lengths.empty()) return {};
  if (static_cast<std::int64_t>(lengths.size()) != batch) {
    return error(name, ": ", lengths.size(), " lengths, but the batch has ", batch,
                 " sequences; give one a sequence");
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > most) {
      return error(name, ": ", lengths[b], " for sequence ", b, "; a length is between 0 and the tensor's ", most);
    }
  }
  return {};
}

std::int64_t longest(std::span<const std::int64_t> starts) {
  std::int64_t most = 0;
  for (std::size_t b = 1; b < starts.size(); ++b) most = std::max(most, starts[b] - starts[b - 1]);
  return most;
}

// Over a cache only queries can be packed.
Status check_packed_queries(const AttentionOptions& o, Problem* p) {
  if (!o.query_lengths.empty())
    return error(
        "query_lengths: given together with query_starts; packed sequences have their lengths from starts");
  if (p->q.shape[0] != 1)
    return error("q: batch ", p->q.shape[0], "; packed tensors have batch 1, query_starts cut them");
  const std::int64_t sequences = p->k.shape[0];
  if (static_cast<std::int64_t>(o.query_starts.size()) != sequences + 1) {
    return error("query_starts: ", o.query_starts.size(), " numbers for ", sequences,
                 " sequences; give one more than there are sequences");
  }
  ATTN_RETURN_IF_ERROR(check_starts("query_starts", o.query_starts, p->q.shape[2]));
  p->batch = sequences;
  p->longest_queries = longest(o.query_starts);
  return {};
}

// Queries are their sequence's last tokens, where nothing else is said.
Status check_appended(const Problem& p) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const Sequence sequence = p.sequence(b);
    if (sequence.queries <= sequence.keys) continue;
    return error("q: ", sequence.queries, " queries, but sequence ", b, " of the batch has ", sequence.keys,
                 " tokens; append their keys and values first, or say by alignment where they sit");
  }
  return {};
}

Status check_cached(const AttentionOptions& o, Problem* p) {
  if (!o.key_lengths.empty() || !o.key_starts.empty() || o.key_offset != 0) {
    return error(!o.key_lengths.empty()  ? "key_lengths"
                 : !o.key_starts.empty() ? "key_starts"
                                         : "key_offset",
                 ": given, but the cache knows its sequences' lengths and positions; leave it out");
  }
  p->longest_keys = p->k.shape[2];
  p->query_starts = o.query_starts;
  if (p->packed()) {
    ATTN_RETURN_IF_ERROR(check_packed_queries(o, p));
  } else {
    p->batch = p->q.shape[0];
    p->longest_queries = p->q.shape[2];
    p->query_lengths = o.query_lengths;
    ATTN_RETURN_IF_ERROR(check_lengths("query_lengths", o.query_lengths, p->batch, p->longest_queries));
  }
  return o.alignment == Alignment::equal_lengths ? check_appended(*p) : Status();
}

Status check_ragged(const AttentionOptions& o, Problem* p) {
  if (o.query_starts.empty() != o.key_starts.empty()) {
    return error(o.query_starts.empty() ? "query_starts" : "key_starts",
                 ": absent while the other starts are given; packed sequences need both");
  }
  p->query_starts = o.query_starts;
  p->key_starts = o.key_starts;
  p->query_lengths = o.query_lengths;
  p->key_lengths = o.key_lengths;
  if (!p->packed()) {
    p->batch = p->q.shape[0];
    p->longest_queries = p->q.shape[2];
    p->longest_keys = p->k.shape[2];
    ATTN_RETURN_IF_ERROR(check_lengths("key_lengths", o.key_lengths, p->batch, p->longest_keys));
    return check_lengths("query_lengths", o.query_lengths, p->batch, p->longest_queries);
  }
  if (!o.key_lengths.empty() || !o.query_lengths.empty()) {
    return error(
        "key_lengths, query_lengths: given together with starts; packed sequences have their lengths from starts");
  }
  if (o.query_starts.size() != o.key_starts.size()) {
    return error("key_starts: ", o.key_starts.size(), " numbers, but query_starts has ", o.query_starts.size(),
                 "; both have one more than there are sequences");
  }
  if (p->q.shape[0] != 1 || p->k.shape[0] != 1) {
    return error("q, k: batch ", p->q.shape[0], " and ", p->k.shape[0],
                 "; packed tensors have batch 1, starts cut them");
  }
  ATTN_RETURN_IF_ERROR(check_starts("query_starts", o.query_starts, p->q.shape[2]));
  ATTN_RETURN_IF_ERROR(check_starts("key_starts", o.key_starts, p->k.shape[2]));
  p->batch = static_cast<std::int64_t>(o.query_starts.size()) - 1;
  p->longest_queries = longest(o.query_starts);
  p->longest_keys = longest(o.key_starts);
  return {};
}

// Rows are numbered in 64 bits: broadcast (stride 0) tensors can claim more than there can be.
Status check_counts(const Problem& p) {
  std::int64_t rows = 0;
  if (__builtin_mul_overflow(p.batch, p.query_heads, &rows) ||
      __builtin_mul_overflow(rows, std::max(p.longest_queries, p.longest_keys), &rows) || rows > kMostPositions) {
    return error("q: ", p.batch, " sequences × ", p.query_heads, " heads × ",
                 std::max(p.longest_queries, p.longest_keys),
                 " rows are more than 64-bit numbers count; fewer are needed");
  }
  return {};
}

Status check_alignment(const AttentionOptions& o, Problem* p) {
  p->alignment = o.alignment;
  if (p->cached && p->alignment == Alignment::equal_lengths) p->alignment = Alignment::bottom_right;
  p->position_offset = o.position_offset;
  p->position_offsets = o.position_offsets;
  if (o.alignment == Alignment::offset) {
    if (o.position_offsets.empty() || static_cast<std::int64_t>(o.position_offsets.size()) == p->batch) return {};
    return error("position_offsets: ", o.position_offsets.size(), " offsets, but the batch has ", p->batch,
                 " sequences; give one a sequence");
  }
  if (o.position_offset != 0 || !o.position_offsets.empty()) {
    return error("position_offset: given with another alignment; set alignment to Alignment::offset");
  }
  const bool needs_position = o.causal || o.window_left || o.window_right || o.alibi;
  if (p->key_offset != 0 && needs_position && o.alignment != Alignment::top_left) {
    return error("key_offset: ", p->key_offset,
                 " makes k a part of the keys, so that lengths do not tell where queries sit; "
                 "set alignment to offset (or top_left)");
  }
  if (p->alignment != Alignment::equal_lengths || !needs_position) return {};
  // Without lengths of their own all sequences are like the first.
  for (std::int64_t b = 0; b < (p->ragged() ? p->batch : std::min<std::int64_t>(1, p->batch)); ++b) {
    const Sequence s = p->sequence(b);
    if (s.queries == s.keys) continue;
    return error(o.causal  ? "causal"
                 : o.alibi ? "alibi"
                           : "window",
                 ": ", s.queries, " queries and ", s.keys, " keys in sequence ", b,
                 "; where they differ, say where queries sit: top-left (the first query at the first key) or "
                 "bottom-right (the last query at the last key, as with a KV cache)");
  }
  return {};
}

Status check_window(const AttentionOptions& o, Problem* p) {
  for (const auto& [name, side, target] : {std::tuple{"window_left", o.window_left, &p->window_left},
                                           std::tuple{"window_right", o.window_right, &p->window_right}}) {
    if (!side) continue;
    if (*side < 0)
      return error(name, ": ", *side, "; a window reaches 0 or more keys to each side, absent means unbounded");
    *target = *side;
  }
  if (o.sink_tokens < 0)
    return error("sink_tokens: ", o.sink_tokens, "; the number of keys that stay visible is 0 or more");
  p->sink_tokens = o.sink_tokens;
  p->causal = o.causal;
  return {};
}

Status check_factors(const AttentionOptions& o, Problem* p) {
  const double scale = o.scale.value_or(1 / std::sqrt(static_cast<double>(p->key_dim)));
  if (!std::isfinite(scale)) return error("scale: ", scale, "; any finite number is allowed");
  constexpr double kLargest = std::numeric_limits<double>::max();
  p->query_factor = std::clamp(scale * kLog2E, -kLargest, kLargest);
  if (!o.softcap) return {};
  const double most = p->compute == DType::f64 ? 0x1p960 : 0x1p96;  // so that no factor overflows or vanishes
  if (!(*o.softcap >= 1 / most && *o.softcap <= most)) {
    return error("softcap: ", *o.softcap, "; it must lie between ", 1 / most, " and ", most, ", or be absent");
  }
  p->query_factor = scale / *o.softcap;
  p->cap_factor = *o.softcap * kLog2E;
  return {};
}

Status check_broadcast(std::string_view name, const TensorView& view, const Problem& p, View4* result) {
  ATTN_RETURN_IF_ERROR(check_memory(name, view));
  *result = aligned_right<const std::byte>(view, 4);
  const std::array<std::int64_t, 4> full{p.batch, p.query_heads, p.longest_queries, p.longest_keys};
  for (int d = 0; d < 4; ++d) {
    if (result->shape[d] == full[d]) continue;
    if (result->shape[d] != 1) {
      return error(name, ": shape ", list_of(shape_of(view)),
                   " does not broadcast against [B, Hq, N, M] = ", list_of(full),
                   "; each size is 1 or the full one");
    }
    result->strides[d] = 0;
  }
  return {};
}

Status check_float_option(std::string_view name, DType dtype, const Problem& p) {
  if (!is_float(dtype))
    return error(name, ": dtype bool; a float dtype is needed (a boolean mask is option `mask`)");
  if ((dtype == DType::f64) != (p.compute == DType::f64)) {
    return error(name, ": dtype ", name_of(dtype), ", but q has ", name_of(p.q.dtype), "; f64 goes with f64 only");
  }
  return {};
}

Status check_per_head(std::string_view name, const TensorView& view, const Problem& p, View4* result) {
  ATTN_RETURN_IF_ERROR(check_float_option(name, view.dtype, p));
  ATTN_RETURN_IF_ERROR(check_memory(name, view));
  if (view.rank != 1 || view.shape[0] != p.query_heads) {
    return error(name, ": shape ", list_of(shape_of(view)), ", but there are ", p.query_heads,
                 " query heads; give one number a head");
  }
  result->data = static_cast<const std::byte*>(view.data);
  result->dtype = view.dtype;
  result->present_ = true;
  result->shape = {1, p.query_heads, 1, 1};
  result->strides = {0, view.strides[0], 0, 0};
  return {};
}

Status check_masks(const AttentionOptions& o, Problem* p) {
  if (o.mask) {
    if (o.mask->dtype != DType::boolean) {
      return error("mask: dtype ", name_of(o.mask->dtype), "; a mask is boolean (a float one is option `bias`)");
    }
    ATTN_RETURN_IF_ERROR(check_broadcast("mask", *o.mask, *p, &p->mask));
  }
  if (o.bias) {
    ATTN_RETURN_IF_ERROR(check_float_option("bias", o.bias->dtype, *p));
    ATTN_RETURN_IF_ERROR(check_broadcast("bias", *o.bias, *p, &p->bias));
  }
  if (o.alibi) ATTN_RETURN_IF_ERROR(check_per_head("alibi", *o.alibi, *p, &p->alibi));
  if (o.sinks) ATTN_RETURN_IF_ERROR(check_per_head("sinks", *o.sinks, *p, &p->sinks));
  return {};
}

// The shape of keys or values that a cache holds.
View4 cached_shape(const CachedKeys& cached, std::int64_t dim) {
  View4 view;
  std::int64_t longest = 0;
  for (const CachedSequence& s : cached.sequences) longest = std::max(longest, s.tokens);
  view.shape = {static_cast<std::int64_t>(cached.sequences.size()), cached.layout.kv_heads, longest, dim};
  return view;
}

Status check_inputs(const Inputs& inputs, Problem* p) {
  ATTN_RETURN_IF_ERROR(check_input("q", inputs.q, &p->q));
  p->cached = inputs.cached;
  if (inputs.cached) {
    p->k = cached_shape(*inputs.cached, inputs.cached->layout.unit.key_dim);
    p->v = cached_shape(*inputs.cached, inputs.cached->layout.unit.value_dim);
    return {};
  }
  ATTN_RETURN_IF_ERROR(check_input("k", *inputs.k, &p->k));
  return inputs.v ? check_input("v", *inputs.v, &p->v) : Status();
}

}  // namespace

Status check_problem(const Inputs& inputs, const AttentionOptions& options, Problem* problem) {
  Problem& p = *problem;
  p.executor = options.executor ? options.executor : &default_executor();
  ATTN_RETURN_IF_ERROR(check_inputs(inputs, problem));
  const bool has_values = inputs.v || inputs.cached;
  p.query_starts = options.query_starts;
  ATTN_RETURN_IF_ERROR(check_dtypes(p, has_values));
  ATTN_RETURN_IF_ERROR(check_shapes(p, has_values));
  p.compute = p.q.dtype == DType::f64 ? DType::f64 : DType::f32;
  p.bf16_products = options.bf16_products;
  if (p.bf16_products) ATTN_RETURN_IF_ERROR(check_bf16_products(p));
  p.query_heads = p.q.shape[1];
  p.kv_heads = p.k.shape[1];
  p.group = p.kv_heads == 0 ? 1 : p.query_heads / p.kv_heads;
  p.key_dim = p.q.shape[3];
  p.value_dim = has_values ? p.v.shape[3] : 1;
  if (options.key_offset < 0 || options.key_offset > kMostPositions / 2 - p.k.shape[2]) {
    return error("key_offset: ", options.key_offset,
                 "; the position of the first key is 0 or more and fits 62 bits");
  }
  p.key_offset = options.key_offset;
  ATTN_RETURN_IF_ERROR(p.cached ? check_cached(options, problem) : check_ragged(options, problem));
  ATTN_RETURN_IF_ERROR(check_counts(p));
  ATTN_RETURN_IF_ERROR(check_alignment(options, problem));
  ATTN_RETURN_IF_ERROR(check_window(options, problem));
  ATTN_RETURN_IF_ERROR(check_factors(options, problem));
  return check_masks(options, problem);
}

Status check_dropped(const Problem& p) {
  for (std::int64_t b = 0; b < p.batch && p.query_heads > 0; ++b) {
    const CachedSequence& cached = p.cached->sequences[static_cast<std::size_t>(b)];
    if (cached.dropped_from >= cached.dropped_to) continue;
    const Sequence sequence = p.sequence(b);
    for (std::int64_t i = 0; i < sequence.queries; ++i) {
      const RowKeys keys = row_keys(p, sequence, i);
      const auto meets = [&](std::int64_t from, std::int64_t to) {
        return std::max(from, cached.dropped_from) < std::min(to, cached.dropped_to);
      };
      if (!meets(keys.first, keys.sink_end) && !meets(keys.begin, keys.end)) continue;
      const std::int64_t position = saturating_add(sequence.position_offset, i);
      return error("cache: tokens ", cached.dropped_from, " to ", cached.dropped_to - 1, " of sequence ", b,
                   " of the batch were dropped, but query ", i, " at position ", position, " sees tokens ",
                   keys.begin, " to ", keys.end - 1, keys.sink_end > keys.first ? " and sink tokens" : "",
                   "; drop less, or see less by causal, window_left and sink_tokens");
    }
  }
  return {};
}

}  // namespace attn

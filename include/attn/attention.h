// Exact scaled dot-product attention: softmax(q·kᵀ·scale + masks)·v.
//
// Shapes: q [B, Hq, N, Dk], k [B, Hkv, M, Dk], v [B, Hkv, M, Dv], out [B, Hq, N, Dv], lse [B, Hq, N]. A view
// with fewer dimensions is aligned right: [N, Dk] is one head of one sequence. Hq is a multiple of Hkv; query
// head h reads key/value head h / (Hq / Hkv). Dk and Dv are at least 1, every other size may be 0.
// dtypes: f32, f16 and bf16 in any mixture (k and v alike), computed in f32; or all f64, computed in f64.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attn/export.h"
#include "attn/isa.h"
#include "attn/options.h"
#include "attn/status.h"
#include "attn/tensor.h"

namespace ATTN_EXPORT attn {

/// What a call is going to do.
struct Plan {
  std::string path;    ///< "tiles" or "specification": the code that runs
  std::string reason;  ///< why that one, in a sentence
  Isa isa = Isa::scalar;
  DType compute = DType::f32;        ///< the arithmetic: f32, f64, or f32 with bf16 products
  int threads = 1;                   ///< threads that may take part
  std::int64_t tasks = 0;            ///< independent pieces: sequence × key/value head × query tile, and × key
                                     ///< segment where there are few tiles
  std::int64_t query_tile_rows = 0;  ///< rows of a query tile, at most
  std::int64_t key_block = 0;        ///< keys of a block
  std::int64_t tiles_full = 0;       ///< query tile × key block pairs that need no mask (an estimate, as the
                                     ///< two below, above 65,536 tiles a head)
  std::int64_t tiles_partial = 0;    ///< pairs that look at masks
  std::int64_t tiles_skipped = 0;    ///< pairs in which no row sees a key; never computed
  std::int64_t scratch_bytes = 0;    ///< memory beyond the tensors, at most (before rounding up to pages)
  double flops = 0;                  ///< 2·(Dk + Dv) for each pair of a query and a key that intervals let it see
  double bytes = 0;                  ///< each tensor once: q, k, v, masks, and out in q's dtype
  double table_bytes = 0;            ///< the N × M table of all heads that is never stored
};

/// Says what forward() would do with these inputs, computing nothing. Errors: as forward(), but for out.
Status plan(const TensorView& q, const TensorView& k, const TensorView& v, const AttentionOptions& options,
            Plan* plan);

/// out = softmax(q·kᵀ·scale + masks)·v; on request lse = log Σ exp(score), natural log.
///
/// A row that sees no key gives out = 0 and lse = −∞ (or the sink logit). The bits of a row depend on its
/// query, on the keys and values it sees and on the options: not on the batch, other rows, threads, strides
/// or SIMD target (docs/numerics.md). Asking for lse changes no bit of out.
///
/// Time O(B·Hq·N·M·(Dk + Dv)), memory beyond the tensors O(N + M). Errors: shapes, dtypes, strides or options
/// that do not fit; `out` or `lse` that overlap themselves, each other or an input.
/// Source: FlashAttention-2 (Dao, 2023) for tiles and online softmax; the order of operations is ONNX Attention's.
Status forward(const TensorView& q, const TensorView& k, const TensorView& v, const OutputView& out,
               const AttentionOptions& options = {}, const std::optional<OutputView>& lse = std::nullopt);

/// The attention weights of chosen rows and heads, from the row's own maximum and sum.
///
/// `weights` is [B, heads, rows, M], f32, f16 or bf16 (f64 where q is f64). `rows` are query indices within
/// a sequence, `heads` query heads; empty means all. Rows beyond a sequence's query length, and keys beyond
/// its key length, get 0. With packed sequences M is the longest key length.
/// Time O(B·heads·rows·M·Dk). Errors: as forward(); a row or head out of range.
Status weights(const TensorView& q, const TensorView& k, const OutputView& weights,
               const AttentionOptions& options = {}, std::span<const std::int64_t> rows = {},
               std::span<const std::int64_t> heads = {});

/// A partial result over a range of keys: what forward() knows before it divides. f32 (f64 where q is f64).
/// The empty state (−∞, 0, 0) is neutral.
struct State {
  OutputView max;  ///< [B, Hq, N]: the largest score × log2(e)
  OutputView sum;  ///< [B, Hq, N]: Σ 2^(score·log2(e) − max)
  OutputView out;  ///< [B, Hq, N, Dv]: Σ 2^(score·log2(e) − max)·value
};

/// The state over the keys of k, which start at options.key_offset. Sink logits belong to finish_state and are
/// refused here. With key_offset ≠ 0, positions need Alignment::offset or top_left: M is not the sequence's
/// length. States cut at multiples of kSegmentKeys and merged in ascending order give the bits of the whole, if each
/// but the first is of one segment (states fold left, so a later one must not be a fold already).
Status forward_state(const TensorView& q, const TensorView& k, const TensorView& v, const State& state,
                     const AttentionOptions& options = {});

/// into ← into merged with `next`, the state over later keys. Shapes and dtypes must be equal.
Status merge_states(const State& into, const State& next);

/// Divides: out [B, Hq, N, Dv] and, on request, lse [B, Hq, N], from a state; `sinks` [Hq] joins last.
Status finish_state(const State& state, const OutputView& out, const std::optional<OutputView>& lse = std::nullopt,
                    const std::optional<TensorView>& sinks = std::nullopt);

/// Merges finished results over disjoint sets of keys: outs[i] [B, Hq, N, Dv] with lses[i] [B, Hq, N], natural
/// log. Right within rounding of the parts, not to the bit: states give the bits. `out` and `lse` may not
/// overlap the parts.
Status merge(std::span<const TensorView> outs, std::span<const TensorView> lses, const OutputView& out,
             const std::optional<OutputView>& lse = std::nullopt);

}  // namespace attn

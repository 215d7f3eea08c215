// Rotary positions (RoPE): each pair of a row's numbers turns by position × frequency, so that q·k depends on distances.
//
// Rotate q and k before attention; a cache then holds keys that are rotated at their absolute position.
// Source: RoFormer (Su et al., 2021); ONNX RotaryEmbedding (opset 23) for layouts and given tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attn/export.h"
#include "attn/status.h"
#include "attn/tensor.h"

namespace ATTN_EXPORT attn {

class Executor;

/// Which two numbers of a row turn together, of a row of which the first R turn.
enum class RopeLayout : std::uint8_t {
  half_split,      ///< i and i + R/2 (GPT-NeoX, Hugging Face)
  adjacent_pairs,  ///< 2i and 2i + 1 (RoFormer, GGUF's Llama, ONNX "interleaved")
};

/// How positions beyond those of the training are met.
enum class RopeScaling : std::uint8_t {
  none,
  linear,  ///< positions / factor (Chen et al., 2023)
  ntk,     ///< base × factor^(R / (R − 2)): high frequencies stay, low ones stretch ("NTK-aware", 2023)
  yarn,  ///< high frequencies stay, low ones are divided by factor, between them a ramp; cos and sin × attention_factor
         ///< (Peng et al., 2023)
};

struct RopeOptions {
  RopeLayout layout = RopeLayout::half_split;
  std::int64_t rotary_dim = 0;  ///< numbers of a row that turn, the first ones; even; 0: all
  double base = 10000;          ///< pair i turns by position × base^(−2i / rotary_dim); above 1
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;  ///< with a scaling: context length over that of the training; at least 1
  // yarn:
  std::int64_t original_length = 0;      ///< the context length of the training
  double beta_fast = 32, beta_slow = 1;  ///< turns within original_length where the ramp begins and ends
  std::optional<double> attention_factor = std::nullopt;  ///< absent: 0.1·ln(factor) + 1
};

/// The angles of some rows: row i of the table is that of the i-th position it was made for.
struct RopeTable {
  std::int64_t positions = 0, pairs = 0;
  std::vector<float> cos, sin;  ///< [positions][pairs]
};

/// The angular frequency of each pair, in radians a position: [rotary_dim / 2]. `head_dim` stands for a rotary_dim of 0.
/// Errors: an odd or too large rotary_dim; a base, factor or length that makes no sense, or that the scaling does not use.
Status rope_frequencies(const RopeOptions& options, std::int64_t head_dim, std::vector<double>* frequencies);

/// The table of the given positions, computed in f64 and rounded once. O(positions × pairs). Errors: as
/// rope_frequencies(); memory that can't be had.
Status rope_table(const RopeOptions& options, std::int64_t head_dim, std::span<const std::int64_t> positions,
                  RopeTable* table);

/// The same for frequencies of one's own (a model file's, say); cos and sin are multiplied by `attention_factor`.
Status rope_table(std::span<const double> frequencies, double attention_factor,
                  std::span<const std::int64_t> positions, RopeTable* table);

/// out = x rotated: both [B, heads, N, D] (or fewer dimensions, aligned right), f32, f16 or bf16, computed in f32; `out` may
/// be `x` itself, and must not share memory with it otherwise. `positions` are [N], for all sequences, or [B · N],
/// sequence after sequence (negative ones turn backwards); empty: 0 … N − 1. Numbers behind rotary_dim are copied. O(B · heads · N · D).
/// Errors: shapes, dtypes or options that do not fit; memory that can't be had.
Status rotate(const TensorView& x, const OutputView& out, std::span<const std::int64_t> positions = {},
              const RopeOptions& options = {}, Executor* executor = nullptr);

/// The same by a table with a row for each row of x: N of them, for all sequences, or B · N. So one table serves the q and
/// k of every layer.
Status rotate_by_table(const TensorView& x, const OutputView& out, const RopeTable& table, RopeLayout layout,
                       Executor* executor = nullptr);

/// The same by given cos and sin, which are [P, R/2], read at `positions` (as above, each 0 to P − 1); or [B, N, R/2], a row
/// a query, and no positions. The first R numbers of a row turn.
Status rotate_by_table(const TensorView& x, const OutputView& out, const TensorView& cos, const TensorView& sin,
                       std::span<const std::int64_t> positions = {}, RopeLayout layout = RopeLayout::half_split,
                       Executor* executor = nullptr);

}  // namespace attn

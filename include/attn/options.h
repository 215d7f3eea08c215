// Everything that changes what attention means: scale, masks, positions, lengths.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attn/export.h"
#include "attn/tensor.h"

namespace ATTN_EXPORT attn {

class Executor;

/// Where a query sits among the keys: query i is at position p = offset + i, key j at position j.
/// Causal attention, windows and ALiBi are defined by p − j.
enum class Alignment : std::uint8_t {
  equal_lengths,  ///< offset 0, and an error where N ≠ M, since both choices below are in use; over a KvCache, where it
                  ///< can only mean one, bottom_right
  top_left,      ///< offset 0: the first query sits at the first key (PyTorch's is_causal)
  bottom_right,  ///< offset M − N: the last query sits at the last key (what a KV cache means)
  offset,        ///< a given offset: `position_offset`, or `position_offsets`, one a sequence
};

/// The order of operations is: q·k, × scale, softcap, + bias, + ALiBi, masks, softmax, · v. Every mask that
/// is present applies; a key that is hidden from a row cannot change that row, whatever it holds.
/// The spans and views must stay alive during the call that gets them.
struct AttentionOptions {
  /// Multiplies q·k. Default 1/sqrt(Dk). Any finite number.
  std::optional<double> scale;

  /// c > 0: score ← c·tanh(score/c), before bias and masks (Gemma 2).
  std::optional<double> softcap;

  /// Query i sees keys j ≤ p only.
  bool causal = false;
  Alignment alignment = Alignment::equal_lengths;
  std::int64_t position_offset = 0;                ///< with Alignment::offset
  std::span<const std::int64_t> position_offsets;  ///< with Alignment::offset: [B], instead of the one above

  /// Keys with p − left ≤ j ≤ p + right; absent means unbounded. "W keys, itself included" is causal with
  /// left = W − 1. Not negative.
  std::optional<std::int64_t> window_left;
  std::optional<std::int64_t> window_right;
  /// The first so many keys stay visible whatever the window says (causal and lengths still apply).
  std::int64_t sink_tokens = 0;

  /// Boolean, true = may attend. Each of the (up to four) dimensions, aligned right against [B, Hq, N, M],
  /// is 1 or the full size.
  std::optional<TensorView> mask;
  /// Added to the score, natural units; f32, f16 or bf16 (f64 where q is f64). −∞ hides the key. Shape as
  /// for `mask`.
  std::optional<TensorView> bias;
  /// [Hq]: adds −slope·|p − j|. Standard slopes: alibi_slopes(Hq). f32 (or f64 where q is f64).
  std::optional<TensorView> alibi;
  /// [Hq]: one learned logit a head that takes part in the softmax and has no value (attention sinks).
  /// f32 (or f64 where q is f64).
  std::optional<TensorView> sinks;

  /// Valid lengths, one a sequence, over padded tensors: [B], 0 ≤ length ≤ M (or N). Rows beyond a query
  /// length see no key: 0 in `out`, −∞ in `lse`. What lies beyond a length is never read into a result.
  std::span<const std::int64_t> key_lengths;
  std::span<const std::int64_t> query_lengths;

  /// Packed sequences: [B + 1] ascending starts, first 0, last at most the packed length (cu_seqlens).
  /// The tensors that are packed have batch size 1; both starts must be given together. Rows behind the last
  /// sequence see no key. Masks, bias and
  /// positions count within a sequence; [B, Hq, longest N, longest M] is what masks broadcast against.
  std::span<const std::int64_t> query_starts;
  std::span<const std::int64_t> key_starts;

  /// The absolute position of the first key of k: not 0 for partial results over a range of keys
  /// (forward_state). Masks and lengths still count from the first key given.
  std::int64_t key_offset = 0;

  /// Rounds q, k, v and the weights to bf16 and multiplies them with the processor's 16-bit instructions, summed in f32:
  /// several times faster than f32 with AMX, up to twice with AVX-512 BF16 (some processors run that at half rate, where
  /// f32 is as fast: measure), with errors of up to 2^−9 of the largest value (PyTorch's bf16 rounds at the same
  /// places). Softmax and sums stay f32. Results are as reproducible as all others, but the processor sums pairs of
  /// products in its own way: other machines may differ in the last bits. An error where bf16_products_available() is
  /// false, and for f64. weights() does not use it.
  bool bf16_products = false;

  /// Who runs the tasks; nullptr: default_executor().
  Executor* executor = nullptr;
};

/// The slopes of "Train Short, Test Long" (Press et al., 2022), as in the paper's code: for a power of two,
/// 2^(−8·h/heads), h = 1 … heads; otherwise those of the next lower power of two, followed by every other
/// one of the next higher. `heads` from 0 up.
std::vector<float> alibi_slopes(int heads);

}  // namespace attn

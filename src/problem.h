// A checked call, normalised: four dimensions everywhere, lengths and positions a sequence, factors folded.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "attn/executor.h"
#include "attn/options.h"
#include "attn/tensor.h"
#include "src/cached_keys.h"

namespace attn {

/// A tensor [B, heads, rows, columns]; a broadcast dimension has stride 0. lse and the parts of a state without
/// columns have one.
template <class Byte>
struct BasicView4 {
  Byte* data = nullptr;
  DType dtype = DType::f32;
  std::array<std::int64_t, 4> shape{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{};

  bool present() const { return present_; }
  bool present_ = false;

  Byte* at(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column = 0) const {
    const std::int64_t offset = b * strides[0] + h * strides[1] + row * strides[2] + column * strides[3];
    return data + offset * static_cast<std::int64_t>(size_of(dtype));
  }
};
using View4 = BasicView4<const std::byte>;
using OutputView4 = BasicView4<std::byte>;

/// One sequence of the batch. Rows and keys of packed tensors start at query_row and key_row of batch entry
/// `tensor_batch`.
struct Sequence {
  std::int64_t index = 0;  // in the batch: masks, and batch entries of padded tensors
  std::int64_t tensor_batch = 0;
  std::int64_t query_row = 0;
  std::int64_t queries = 0;
  std::int64_t key_row = 0;
  std::int64_t keys = 0;
  std::int64_t position_offset = 0;  // query i is at position_offset + i
};

/// The keys that a row's intervals let it see, as absolute positions: [first, sink_end) and [begin, end), in
/// ascending order and disjoint; masks and −∞ biases may hide more. Both empty: the row sees nothing.
struct RowKeys {
  std::int64_t first = 0, sink_end = 0;
  std::int64_t begin = 0, end = 0;

  bool empty() const { return sink_end <= first && end <= begin; }
  /// From the first key seen to behind the last.
  std::int64_t lowest() const { return first < sink_end ? first : begin; }
  std::int64_t highest() const { return begin < end ? end : sink_end; }
  bool contains(std::int64_t key) const { return (key >= first && key < sink_end) || (key >= begin && key < end); }
};

struct Problem {
  View4 q, k, v;
  const CachedKeys* cached = nullptr;  // keys and values come from there, and k and v have a shape alone
  DType compute = DType::f32;
  bool bf16_products = false;
  std::int64_t batch = 0, query_heads = 0, kv_heads = 0, group = 1;
  std::int64_t key_dim = 0, value_dim = 0;
  std::int64_t longest_queries = 0, longest_keys = 0;

  // Scores leave q·k in units of log2(e) (or, with a softcap, as the argument of tanh): q is multiplied by this
  // in f64 and rounded once.
  double query_factor = 1;
  double cap_factor = 0;  // softcap·log2(e); 0: no softcap

  View4 mask, bias;    // broadcast against [B, Hq, N, M]
  View4 alibi, sinks;  // [1, Hq, 1, 1]

  bool causal = false;
  std::int64_t window_left = kUnbounded, window_right = kUnbounded;
  std::int64_t sink_tokens = 0;
  std::int64_t key_offset = 0;

  // Kept as given: asked a sequence at a time, so that no call allocates.
  Alignment alignment = Alignment::equal_lengths;
  std::int64_t position_offset = 0;
  std::span<const std::int64_t> position_offsets, query_lengths, key_lengths, query_starts, key_starts;

  Executor* executor = nullptr;  // never null once checked

  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

  bool packed() const { return !query_starts.empty(); }
  /// Sequences have lengths of their own.
  bool ragged() const { return packed() || !query_lengths.empty() || !key_lengths.empty(); }
  /// No interval depends on a row's position.
  bool same_keys_for_all_rows() const { return !causal && window_left == kUnbounded && window_right == kUnbounded; }
  bool dense_mask() const { return mask.present() || bias.present(); }
  Sequence sequence(std::int64_t index) const;
};

/// The keys that row i of a sequence may see.
RowKeys row_keys(const Problem& problem, const Sequence& sequence, std::int64_t row);

/// The positions of a sequence's keys that lie in the block [block, block + kBlockKeys): [from, to).
struct BlockKeys {
  std::int64_t from, to;
};
BlockKeys keys_in_block(const Problem& problem, const Sequence& sequence, std::int64_t block);

/// 64-bit sums that stop at the ends of the range instead of overflowing.
std::int64_t saturating_add(std::int64_t a, std::int64_t b);

}  // namespace attn

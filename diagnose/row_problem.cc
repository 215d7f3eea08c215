#include "diagnose/row_problem.h"

#include <algorithm>
#include <array>

namespace attn::diagnose {
namespace {

using Index = std::array<std::int64_t, 4>;

// With four dimensions, aligned right.
TensorView with_four_dimensions(const TensorView& view) {
  TensorView four = view;
  four.rank = 4;
  for (int d = 3; d >= 0; --d) {
    const int from = d - (4 - view.rank);
    four.shape[static_cast<std::size_t>(d)] = from >= 0 ? view.shape[static_cast<std::size_t>(from)] : 1;
    four.strides[static_cast<std::size_t>(d)] = from >= 0 ? view.strides[static_cast<std::size_t>(from)] : 0;
  }
  return four;
}

// One index of each dimension, or all of it where that is −1. Dimensions of size 1 have but one.
TensorView part_of(const TensorView& view, const Index& index) {
  TensorView part = with_four_dimensions(view);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    if (index[d] < 0) continue;
    if (part.shape[d] > 1) offset += index[d] * part.strides[d];
    part.shape[d] = 1;
  }
  part.data = static_cast<const std::byte*>(part.data) + offset * static_cast<std::int64_t>(size_of(part.dtype));
  return part;
}

TensorView head_of(const TensorView& heads, std::int64_t head) {
  TensorView one = heads;
  one.data = static_cast<const std::byte*>(heads.data) +
             head * heads.strides[0] * static_cast<std::int64_t>(size_of(heads.dtype));
  one.shape[0] = 1;
  return one;
}

}  // namespace

void make_row_problem(const TensorView& q, const TensorView& k, const TensorView& v,
                      const AttentionOptions& options, const reference::Sequence& sequence, std::int64_t head,
                      std::int64_t i, RowProblem* row) {
  const TensorView query = with_four_dimensions(q), key = with_four_dimensions(k);
  const std::int64_t batch = sequence.index, kv_head = head / (query.shape[1] / key.shape[1]);
  row->q = part_of(q, {batch, head, i, -1});
  row->k = part_of(k, {batch, kv_head, -1, -1});
  row->v = part_of(v, {batch, kv_head, -1, -1});
  row->key_length = sequence.keys;
  row->options = options;
  row->options.key_lengths = {&row->key_length, 1};
  row->options.query_lengths = {};
  row->options.alignment = Alignment::offset;
  // Beyond this all keys are seen, or none: no sum overflows.
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  row->options.position_offset = std::clamp(sequence.offset, -kFar, kFar) + i;
  row->options.position_offsets = {};
  if (options.mask) row->options.mask = part_of(*options.mask, {batch, head, i, -1});
  if (options.bias) row->options.bias = part_of(*options.bias, {batch, head, i, -1});
  if (options.alibi) row->options.alibi = head_of(*options.alibi, head);
  if (options.sinks) row->options.sinks = head_of(*options.sinks, head);
}

}  // namespace attn::diagnose

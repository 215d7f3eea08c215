#include "engine_parts.h"

#include <algorithm>
#include <random>

namespace attn::tests {
namespace {

// Broadcast dimensions stay as they are.
void slice_broadcast(std::optional<Tensor>* tensor, int dimension, std::int64_t first, std::int64_t count) {
  if (!*tensor || (*tensor)->shape()[dimension] == 1) return;
  *tensor = (*tensor)->slice(dimension, first, count);
}

// A position of its own for every sequence, so that what is left out does not move the rest.
void fix_positions(const Problem& problem, Problem* part) {
  part->plain.alignment = Alignment::offset;
  part->plain.position_offset = 0;
  part->position_offsets = position_offsets_of(problem);
}

}  // namespace

std::vector<std::int64_t> position_offsets_of(const Problem& p) {
  if (!p.position_offsets.empty()) return p.position_offsets;
  std::vector<std::int64_t> offsets(p.sizes.batch, p.plain.position_offset);
  if (p.plain.alignment != Alignment::bottom_right) return offsets;
  for (std::int64_t b = 0; b < p.sizes.batch; ++b) {
    const std::int64_t keys = p.key_lengths.empty() ? p.sizes.keys : p.key_lengths[b];
    offsets[b] = keys - (p.query_lengths.empty() ? p.sizes.queries : p.query_lengths[b]);
  }
  return offsets;
}

Problem rows_of(const Problem& p, const RowRange& r) {
  const std::int64_t group = p.sizes.query_heads / p.sizes.kv_heads, head = r.kv_head * group;
  Problem part = p;
  part.sizes = {1, group, 1, r.count, p.sizes.keys, p.sizes.key_dim, p.sizes.value_dim};
  part.q = p.q.slice(0, r.sequence, 1).slice(1, head, group).slice(2, r.first, r.count);
  part.k = p.k.slice(0, r.sequence, 1).slice(1, r.kv_head, 1);
  part.v = p.v.slice(0, r.sequence, 1).slice(1, r.kv_head, 1);
  for (std::optional<Tensor>* tensor : {&part.mask, &part.bias}) {
    slice_broadcast(tensor, 0, r.sequence, 1);
    slice_broadcast(tensor, 1, head, group);
    slice_broadcast(tensor, 2, r.first, r.count);
  }
  for (std::optional<Tensor>* tensor : {&part.alibi, &part.sinks}) {
    if (*tensor) *tensor = (*tensor)->slice(0, head, group);
  }
  fix_positions(p, &part);
  part.position_offsets = {part.position_offsets[r.sequence] + r.first};
  if (!p.key_lengths.empty()) part.key_lengths = {p.key_lengths[r.sequence]};
  if (!p.query_lengths.empty()) {
    part.query_lengths = {std::clamp<std::int64_t>(p.query_lengths[r.sequence] - r.first, 0, r.count)};
  }
  return part;
}

Answer rows_of(const Problem& p, const Answer& whole, const RowRange& r) {
  const std::int64_t group = p.sizes.query_heads / p.sizes.kv_heads;
  const auto part = [&](const Tensor& tensor) {
    return tensor.slice(0, r.sequence, 1).slice(1, r.kv_head * group, group).slice(2, r.first, r.count);
  };
  return {part(whole.out), part(whole.lse)};
}

testing::AssertionResult rows_alone_agree(const Problem& problem, std::uint64_t seed) {
  const Answer whole = attend(problem);
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  const auto below = [&random](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (int i = 0; i < 4 && problem.sizes.queries > 0; ++i) {
    RowRange rows{below(problem.sizes.batch), below(problem.sizes.kv_heads), below(problem.sizes.queries), 0};
    rows.count = i == 0 ? 1 : 1 + below(problem.sizes.queries - rows.first);
    if (const auto same = same_bits(attend(rows_of(problem, rows)), rows_of(problem, whole, rows)); !same) {
      return testing::AssertionFailure() << rows.count << " rows from " << rows.first << " of sequence "
                                         << rows.sequence << ": " << same.message();
    }
  }
  return testing::AssertionSuccess();
}

Problem keys_of(const Problem& p, std::int64_t first, std::int64_t count) {
  Problem part = p;
  part.sizes.keys = count;
  part.k = p.k.slice(2, first, count);
  part.v = p.v.slice(2, first, count);
  part.sinks.reset();
  slice_broadcast(&part.mask, 3, first, count);
  slice_broadcast(&part.bias, 3, first, count);
  fix_positions(p, &part);
  part.plain.key_offset = p.plain.key_offset + first;
  for (std::int64_t& length : part.key_lengths) length = std::clamp<std::int64_t>(length - first, 0, count);
  return part;
}

StateParts::StateParts(const Problem& p)
    : max(p.compute(), {p.sizes.batch, p.sizes.query_heads, p.sizes.queries}),
      sum(p.compute(), {p.sizes.batch, p.sizes.query_heads, p.sizes.queries}),
      out(p.compute(), {p.sizes.batch, p.sizes.query_heads, p.sizes.queries, p.sizes.value_dim}) {}

State StateParts::state() { return {max.output(), sum.output(), out.output()}; }

}  // namespace attn::tests

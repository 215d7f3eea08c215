#include "src/specification/specification.h"

#include <algorithm>
#include <array>

#include "attn/numerics.h"
#include "src/elements.h"
#include "src/state.h"

namespace attn::specification {
namespace {

// One row: where its inputs lie, and what its options say.
template <class T>
struct Row {
  const Problem& problem;
  const Sequence& sequence;
  std::int64_t head;
  std::int64_t index;
  RowKeys keys;
  std::vector<T> query;  // × query_factor, rounded once
  T slope = 0;           // ALiBi, × log2(e)

  Row(const Problem& p, const Sequence& s, std::int64_t head, std::int64_t index)
      : problem(p), sequence(s), head(head), index(index), keys(row_keys(p, s, index)), query(p.key_dim) {
    for (std::int64_t d = 0; d < p.key_dim; ++d) {
      const auto* element = p.q.at(s.tensor_batch, head, s.query_row + index, d);
      query[d] = static_cast<T>(load_element<double>(element, p.q.dtype) * p.query_factor);
    }
    if (p.alibi.present())
      slope = static_cast<T>(load_element<double>(p.alibi.at(0, head, 0), p.alibi.dtype) * kLog2E);
  }

  std::int64_t local(std::int64_t key) const { return key - problem.key_offset; }

  T element(const View4& view, std::int64_t key, std::int64_t column) const {
    const auto* from = view.at(sequence.tensor_batch, head / problem.group, sequence.key_row + local(key), column);
    return load_element<T>(from, view.dtype);
  }

  T key_number(std::int64_t key, std::int64_t d) const {
    const CachedKeys* cached = problem.cached;
    if (!cached) return element(problem.k, key, d);
    const std::byte* unit = cached->key_unit(sequence.index, head / problem.group, key);
    return static_cast<T>(load_key(cached->layout.unit, unit, key % kUnitKeys, d));
  }

  T value_number(std::int64_t key, std::int64_t column) const {
    const CachedKeys* cached = problem.cached;
    if (!cached) return element(problem.v, key, column);
    const std::byte* unit = cached->value_unit(sequence.index, head / problem.group, key);
    return static_cast<T>(load_value(cached->layout.unit, unit, key % kUnitKeys, column));
  }

  T bias(std::int64_t key) const {
    return load_element<T>(problem.bias.at(sequence.index, head, index, local(key)), problem.bias.dtype);
  }

  bool sees(std::int64_t key) const {
    if (!keys.contains(key)) return false;
    if (problem.mask.present()) {
      const auto* allowed = problem.mask.at(sequence.index, head, index, local(key));
      if (read_as<std::uint8_t>(allowed) == 0) return false;
    }
    return !problem.bias.present() || bias(key) != kMinusInfinity<T>;
  }

  // In units of log2(e); the order of operations is the contract's.
  T score(std::int64_t key) const {
    T s = 0;
    for (std::int64_t d = 0; d < problem.key_dim; ++d) {
      s = std::fma(query[d], key_number(key, d), s);
    }
    if (problem.cap_factor != 0) s = tanh_of(s) * static_cast<T>(problem.cap_factor);
    if (problem.bias.present()) s = std::fma(bias(key), static_cast<T>(kLog2E), s);
    if (problem.alibi.present()) {
      const std::int64_t position = saturating_add(sequence.position_offset, index);
      const std::int64_t block = key / kBlockKeys * kBlockKeys;
      const T distance = std::fabs(static_cast<T>(saturating_add(position, -block)) - static_cast<T>(key - block));
      s = std::fma(-slope, distance, s);
    }
    return s;
  }
};

// The keys [block, block + kBlockKeys): the running maximum and sum step once.
template <class T>
void add_block(const Row<T>& row, std::int64_t block, RowState<T>* state) {
  std::array<T, kBlockKeys> scores;
  scores.fill(kMinusInfinity<T>);
  T max = state->max;
  for (std::int64_t j = 0; j < kBlockKeys; ++j) {
    if (!row.sees(block + j)) continue;
    scores[j] = row.score(block + j);
    max = std::max(max, scores[j]);
  }
  const T subtract = subtrahend(max);
  const T rescale = exp2_nonpositive(state->max - subtract);

  T lanes[kSumLanes] = {};
  std::vector<T> weighted(row.problem.value_dim, T(0));
  for (std::int64_t j = 0; j < kBlockKeys; ++j) {
    const T weight = exp2_nonpositive(scores[j] - subtract);
    lanes[j % kSumLanes] += weight;
    if (!row.sees(block + j)) continue;
    for (std::int64_t c = 0; c < row.problem.value_dim; ++c) {
      weighted[c] = std::fma(weight, row.value_number(block + j, c), weighted[c]);
    }
  }
  state->max = max;
  state->sum = std::fma(state->sum, rescale, fold_lanes(lanes));
  for (std::int64_t c = 0; c < row.problem.value_dim; ++c) {
    state->out[c] = std::fma(state->out[c], rescale, weighted[c]);
  }
}

}  // namespace

template <class T>
RowState<T> attend_row(const Problem& problem, const Sequence& sequence, std::int64_t head, std::int64_t index) {
  const Row<T> row(problem, sequence, head, index);
  RowState<T> total;
  total.out.assign(problem.value_dim, T(0));
  if (row.keys.empty()) return total;
  const std::int64_t first_segment = row.keys.lowest() / kSegmentKeys * kSegmentKeys;
  for (std::int64_t segment = first_segment; segment < row.keys.highest(); segment += kSegmentKeys) {
    RowState<T> state;
    state.out.assign(problem.value_dim, T(0));
    for (std::int64_t block = segment; block < segment + kSegmentKeys; block += kBlockKeys)
      add_block(row, block, &state);
    merge_row(&total.max, &total.sum, total.out.data(), state.max, state.sum, state.out.data(), problem.value_dim);
  }
  return total;
}

template <class T>
void score_row(const Problem& problem, const Sequence& sequence, std::int64_t head, std::int64_t index, T* scores) {
  const Row<T> row(problem, sequence, head, index);
  for (std::int64_t j = 0; j < sequence.keys; ++j) {
    const std::int64_t key = problem.key_offset + j;
    scores[j] = row.sees(key) ? row.score(key) : kMinusInfinity<T>;
  }
}

template RowState<float> attend_row(const Problem&, const Sequence&, std::int64_t, std::int64_t);
template RowState<double> attend_row(const Problem&, const Sequence&, std::int64_t, std::int64_t);
template void score_row(const Problem&, const Sequence&, std::int64_t, std::int64_t, float*);
template void score_row(const Problem&, const Sequence&, std::int64_t, std::int64_t, double*);

}  // namespace attn::specification

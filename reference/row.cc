// The recipe for one query row, in float64: visible keys, scores, softmax.
#include "reference/row.h"

#include <cmath>
#include <limits>

namespace attn::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The difference of two signed numbers, the larger one first, always fits the unsigned type.
std::uint64_t gap(std::int64_t larger, std::int64_t smaller) {
  return static_cast<std::uint64_t>(larger) - static_cast<std::uint64_t>(smaller);
}

bool is_inside_window(const AttentionOptions& options, std::int64_t p, std::int64_t j) {
  if (j < options.sink_tokens) return true;
  if (j < p) return !options.window_left || gap(p, j) <= static_cast<std::uint64_t>(*options.window_left);
  return !options.window_right || gap(j, p) <= static_cast<std::uint64_t>(*options.window_right);
}

}  // namespace

bool is_visible(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i, std::int64_t j) {
  const AttentionOptions& options = inputs.options;
  const std::int64_t p = sequence.offset + i;
  const std::int64_t key_position = options.key_offset + j;
  const std::array<std::int64_t, 4> index{sequence.index, head, i, j};
  if (options.causal && key_position > p) return false;
  if (!is_inside_window(options, p, key_position)) return false;
  if (options.mask && read_at(*options.mask, index) == 0) return false;
  return !options.bias || read_at(*options.bias, index) != -kInfinity;
}

double distance(const Inputs& inputs, const Sequence& sequence, std::int64_t i, std::int64_t j) {
  const std::int64_t p = sequence.offset + i;
  const std::int64_t key_position = inputs.options.key_offset + j;
  return static_cast<double>(p > key_position ? gap(p, key_position) : gap(key_position, p));
}

double score(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i, std::int64_t j) {
  const AttentionOptions& options = inputs.options;
  const double* q = inputs.query.row(sequence.tensor_batch, head, sequence.first_query + i);
  const double* k = inputs.key.row(sequence.tensor_batch, inputs.key_head(head), sequence.first_key + j);

  double s = 0;
  for (std::int64_t d = 0; d < inputs.query.shape[3]; ++d) s += q[d] * k[d];
  s *= inputs.scale;
  if (options.softcap) s = *options.softcap * std::tanh(s / *options.softcap);
  if (options.bias) s += read_at(*options.bias, {sequence.index, head, i, j});
  if (options.alibi) s -= read_head(*options.alibi, head) * distance(inputs, sequence, i, j);
  return s;
}

Row attend(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i) {
  Row row;
  for (std::int64_t j = 0; j < sequence.keys; ++j) {
    if (!is_visible(inputs, sequence, head, i, j)) continue;
    row.keys.push_back(j);
    row.scores.push_back(score(inputs, sequence, head, i, j));
  }
  const double sink = inputs.options.sinks ? read_head(*inputs.options.sinks, head) : -kInfinity;

  row.max = sink;
  for (const double s : row.scores) row.max = std::fmax(row.max, s);
  // e^(s − max) keeps the largest term at 1. Where nothing is above −∞ there is nothing to keep: subtract 0.
  const double shift = row.max == -kInfinity ? 0 : row.max;

  double sum = std::exp(sink - shift);
  for (const double s : row.scores) sum += std::exp(s - shift);
  for (const double s : row.scores) row.weights.push_back(sum == 0 ? 0 : std::exp(s - shift) / sum);
  row.sink_weight = sum == 0 ? 0 : std::exp(sink - shift) / sum;
  row.lse = shift + std::log(sum);
  return row;
}

}  // namespace attn::reference

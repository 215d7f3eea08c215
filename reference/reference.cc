// Attention over whole tensors: the recipe of row.cc for every sequence, head and query.
#include "reference/reference.h"

#include <algorithm>
#include <limits>

#include "reference/inputs.h"
#include "reference/row.h"

namespace attn::reference {
namespace {

std::int64_t longest_keys(const Inputs& inputs) {
  if (inputs.options.key_starts.empty()) return inputs.key.shape[2];
  std::int64_t longest = 0;
  for (const Sequence& sequence : inputs.sequences) longest = std::max(longest, sequence.keys);
  return longest;
}

// What rows that belong to no sequence keep: nothing seen, nothing said.
Result blank_result(const Inputs& inputs, bool keep_weights) {
  Result result;
  result.batch = inputs.query.shape[0];
  result.heads = inputs.query_heads();
  result.queries = inputs.query.shape[2];
  result.value_dim = inputs.value_dim();
  result.keys = longest_keys(inputs);
  const std::int64_t rows = result.batch * result.heads * result.queries;
  result.out.assign(rows * result.value_dim, 0.0);
  result.lse.assign(rows, -std::numeric_limits<double>::infinity());
  if (keep_weights) result.weights.assign(rows * result.keys, 0.0);
  return result;
}

// out = Σ weight · value over the visible keys.
void sum_values(const Inputs& inputs, const Sequence& sequence, std::int64_t head, const Row& row, double* out) {
  // A row whose every score is −∞ has seen nothing: not even 0 · NaN.
  if (row.lse == -std::numeric_limits<double>::infinity()) return;
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const double* v =
        inputs.value.row(sequence.tensor_batch, inputs.key_head(head), sequence.first_key + row.keys[n]);
    for (std::int64_t c = 0; c < inputs.value_dim(); ++c) out[c] += row.weights[n] * v[c];
  }
}

}  // namespace

Result attention(const TensorView& q, const TensorView& k, const TensorView& v, const AttentionOptions& options,
                 bool keep_weights) {
  const Inputs inputs(q, k, v, options);
  Result result = blank_result(inputs, keep_weights);
  for (const Sequence& sequence : inputs.sequences) {
    for (std::int64_t head = 0; head < inputs.query_heads(); ++head) {
      for (std::int64_t i = 0; i < sequence.queries; ++i) {
        const Row row = attend(inputs, sequence, head, i);
        const std::int64_t index =
            (sequence.tensor_batch * result.heads + head) * result.queries + sequence.first_query + i;
        result.lse[index] = row.lse;
        sum_values(inputs, sequence, head, row, result.out.data() + index * result.value_dim);
        for (std::size_t n = 0; keep_weights && n < row.keys.size(); ++n) {
          result.weights[index * result.keys + row.keys[n]] = row.weights[n];
        }
      }
    }
  }
  return result;
}

}  // namespace attn::reference

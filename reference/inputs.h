// What a call of attention gets, read into float64: tensors of any dtype and strides, and the sequences in them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "attn/options.h"
#include "attn/tensor.h"

namespace attn::reference {

/// A tensor in float64, row-major, its shape aligned right to four dimensions: [batch, head, row, column].
struct Array {
  std::array<std::int64_t, 4> shape{1, 1, 1, 1};
  std::vector<double> values;

  const double* row(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    return values.data() + ((batch * shape[1] + head) * shape[2] + row) * shape[3];
  }
};

/// Every element of the view, exactly.
Array read(const TensorView& view);

/// The element of a view that broadcasts against [batch, head, row, column]: dimensions are aligned right, and
/// those of size 1 count for every index.
double read_at(const TensorView& view, const std::array<std::int64_t, 4>& index);

/// Element h of a view of shape [heads].
double read_head(const TensorView& view, std::int64_t head);

/// One sequence of the batch: where its rows lie in the tensors, and where its queries sit among its keys.
struct Sequence {
  std::int64_t index;         ///< in the batch; what masks and biases are asked with
  std::int64_t tensor_batch;  ///< in the tensors: `index`, or 0 where sequences are packed
  std::int64_t first_query;   ///< rows of q before this sequence's own; 0 unless packed
  std::int64_t first_key;     ///< the same for k and v
  std::int64_t queries;       ///< valid query rows
  std::int64_t keys;          ///< valid keys
  std::int64_t offset;        ///< query i is at position offset + i
};

/// Everything the recipe reads.
struct Inputs {
  Array query;   ///< [B, Hq, N, Dk]
  Array key;     ///< [B, Hkv, M, Dk]
  Array value;   ///< [B, Hkv, M, Dv]
  double scale;  ///< 1/sqrt(Dk) unless given
  AttentionOptions options;
  std::vector<Sequence> sequences;

  Inputs(const TensorView& q, const TensorView& k, const TensorView& v, const AttentionOptions& options);

  std::int64_t query_heads() const { return query.shape[1]; }
  std::int64_t value_dim() const { return value.shape[3]; }

  /// The key/value head that query head `head` reads.
  std::int64_t key_head(std::int64_t head) const { return head / (query.shape[1] / key.shape[1]); }
};

}  // namespace attn::reference

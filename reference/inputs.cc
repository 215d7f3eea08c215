// Reading tensors of any dtype and strides into float64, and finding the sequences in a padded or packed batch.
#include "reference/inputs.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

namespace attn::reference {
namespace {

// A binary float of 16 bits: one sign bit, then the exponent, then `fraction_bits` of fraction.
double read_16_bits(std::uint16_t bits, int fraction_bits) {
  const int exponent_mask = (1 << (15 - fraction_bits)) - 1;
  const int exponent = (bits >> fraction_bits) & exponent_mask;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = exponent_mask / 2;
  double magnitude = 0;
  if (exponent == exponent_mask) {
    magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    magnitude = std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Views may start at any address, hence memcpy.
template <class Number>
Number load(const std::byte* address) {
  Number number;
  std::memcpy(&number, address, sizeof(number));
  return number;
}

double read_element(const TensorView& view, std::int64_t element) {
  const std::byte* address =
      static_cast<const std::byte*>(view.data) + element * static_cast<std::int64_t>(size_of(view.dtype));
  switch (view.dtype) {
    case DType::f64: return load<double>(address);
    case DType::f32: return load<float>(address);
    case DType::f16: return read_16_bits(load<std::uint16_t>(address), 10);
    case DType::bf16: return read_16_bits(load<std::uint16_t>(address), 7);
    case DType::boolean: return load<std::uint8_t>(address) != 0 ? 1 : 0;
  }
  return 0;
}

// The sequences of a padded batch: one a batch entry, as long as its lengths say.
std::vector<Sequence> padded_sequences(std::int64_t batch, std::int64_t queries, std::int64_t keys,
                                       const AttentionOptions& options) {
  std::vector<Sequence> sequences;
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t valid_queries = options.query_lengths.empty() ? queries : options.query_lengths[b];
    const std::int64_t valid_keys = options.key_lengths.empty() ? keys : options.key_lengths[b];
    sequences.push_back({b, b, 0, 0, valid_queries, valid_keys, 0});
  }
  return sequences;
}

std::vector<Sequence> packed_sequences(const AttentionOptions& options) {
  const auto& query_starts = options.query_starts;
  const auto& key_starts = options.key_starts;
  std::vector<Sequence> sequences;
  for (std::size_t s = 0; s + 1 < query_starts.size(); ++s) {
    sequences.push_back({static_cast<std::int64_t>(s), 0, query_starts[s], key_starts[s],
                         query_starts[s + 1] - query_starts[s], key_starts[s + 1] - key_starts[s], 0});
  }
  return sequences;
}

std::int64_t position_offset(const Sequence& sequence, const AttentionOptions& options) {
  switch (options.alignment) {
    case Alignment::equal_lengths:
    case Alignment::top_left: return 0;
    case Alignment::bottom_right: return sequence.keys - sequence.queries;
    case Alignment::offset:
      return options.position_offsets.empty() ? options.position_offset : options.position_offsets[sequence.index];
  }
  return 0;
}

}  // namespace

Array read(const TensorView& view) {
  Array array;
  std::array<std::int64_t, 4> strides{};
  for (int d = 0; d < view.rank; ++d) {
    array.shape[4 - view.rank + d] = view.shape[d];
    strides[4 - view.rank + d] = view.strides[d];
  }
  const auto [batch, heads, rows, columns] = array.shape;
  array.values.reserve(static_cast<std::size_t>(batch * heads * rows * columns));
  for (std::int64_t b = 0; b < array.shape[0]; ++b)
    for (std::int64_t h = 0; h < array.shape[1]; ++h)
      for (std::int64_t r = 0; r < array.shape[2]; ++r)
        for (std::int64_t c = 0; c < array.shape[3]; ++c)
          array.values.push_back(
              read_element(view, b * strides[0] + h * strides[1] + r * strides[2] + c * strides[3]));
  return array;
}

double read_at(const TensorView& view, const std::array<std::int64_t, 4>& index) {
  std::int64_t element = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] != 1) element += index[4 - view.rank + d] * view.strides[d];
  }
  return read_element(view, element);
}

double read_head(const TensorView& view, std::int64_t head) { return read_at(view, {0, 0, 0, head}); }

Inputs::Inputs(const TensorView& q, const TensorView& k, const TensorView& v, const AttentionOptions& options)
    : query(read(q)), key(read(k)), value(read(v)), options(options) {
  scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.shape[3])));
  sequences = options.query_starts.empty() ? padded_sequences(query.shape[0], query.shape[2], key.shape[2], options)
                                           : packed_sequences(options);
  for (Sequence& sequence : sequences) sequence.offset = position_offset(sequence, options);
}

}  // namespace attn::reference

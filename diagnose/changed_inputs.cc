// Tensors as mistakes in their layout read them.
#include <utility>

#include "diagnose/catalogue.h"

namespace attn::diagnose {
namespace {

// [B, H, N, D] numbers in the order of [B, N, H, D], read as [B, H, N, D].
void mix(reference::Array* array) {
  const auto [batch, heads, rows, columns] = array->shape;
  std::vector<double> mixed;
  mixed.reserve(array->values.size());
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t at = 0; at < heads * rows; ++at) {
      const double* row = array->row(b, at % heads, at / heads);
      mixed.insert(mixed.end(), row, row + columns);
    }
  }
  array->values = std::move(mixed);
}

}  // namespace

bool mix_heads_and_time(reference::Inputs* inputs, bool keys_and_values_too) {
  if (inputs->query.shape[1] == 1) return false;
  mix(&inputs->query);
  if (!keys_and_values_too) return true;
  mix(&inputs->key);
  mix(&inputs->value);
  return true;
}

bool reshape_keys(reference::Inputs* inputs) {
  reference::Array& key = inputs->key;
  const auto [batch, heads, rows, columns] = key.shape;
  std::vector<double> reshaped(key.values.size());
  for (std::int64_t slice = 0; slice < batch * heads; ++slice) {
    const auto start = static_cast<std::size_t>(slice * rows * columns);
    for (std::int64_t j = 0; j < rows; ++j) {
      for (std::int64_t d = 0; d < columns; ++d) {
        reshaped[start + static_cast<std::size_t>(j * columns + d)] =
            key.values[start + static_cast<std::size_t>(d * rows + j)];
      }
    }
  }
  key.values = std::move(reshaped);
  return true;
}

bool swap_queries_and_keys(reference::Inputs* inputs) {
  if (inputs->query.shape != inputs->key.shape) return false;
  std::swap(inputs->query.values, inputs->key.values);
  return true;
}

bool use_keys_as_values(reference::Inputs* inputs) {
  if (inputs->key.shape != inputs->value.shape) return false;
  inputs->value.values = inputs->key.values;
  return true;
}

bool use_values_as_keys(reference::Inputs* inputs) {
  if (inputs->key.shape != inputs->value.shape) return false;
  inputs->key.values = inputs->value.values;
  return true;
}

}  // namespace attn::diagnose

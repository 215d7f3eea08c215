// Boolean masks and additive biases as one row of numbers to add: −∞ hides.
#pragma once

#include <cstdint>

#include "src/kernels/kernels.h"
#include "src/problem.h"

namespace attn {

/// A stretch of a row of the score table, keys counted from the sequence's first.
struct BiasPlace {
  std::int64_t sequence, head, query, first_key;
};

/// row[0 … count): the bias (0 without one) of keys from place.first_key on; −∞ where the mask is false.
template <class T>
void fill_bias_row(const Problem& problem, const KernelSet<T>& kernels, const BiasPlace& place, std::int64_t count,
                   T* row);

}  // namespace attn

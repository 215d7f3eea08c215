// A finished row's way to the caller's memory.
#pragma once

#include <cstdint>

#include "src/destination.h"

namespace attn {

/// out[c] ← out[c] / sum, zeros as +0 and NaN as the one quiet NaN; all 0 where sum is 0. Kernels have faster ones.
template <class T>
using DivideRow = void (*)(T* out, std::int64_t columns, T sum);
template <class T>
void divide_row(T* out, std::int64_t columns, T sum);

/// Stores one row's state; `out` is used up. Sink logits join here, last.
template <class T>
void store_row(const View4& sinks, const Destination& to, const RowPlace& place, T max, T sum, T* out,
               DivideRow<T> divide = divide_row<T>);

/// A row that is no query of its sequence, beyond its query length: it sees no key.
template <class T>
void store_padding_row(const Destination& to, const RowPlace& place);

}  // namespace attn

// A finished row's way to the caller's memory.
#pragma once

#include "src/destination.h"

namespace attn {

/// Stores one row's state; `out` is used up. Sink logits join here, last.
template <class T>
void store_row(const View4& sinks, const Destination& to, const RowPlace& place, T max, T sum, T* out);

/// A row that is no query of its sequence, beyond its query length: it sees no key.
template <class T>
void store_padding_row(const Destination& to, const RowPlace& place);

}  // namespace attn

// A finished row's way to the caller's memory.
#pragma once

#include "src/problem.h"

namespace attn {

/// Where results go. With `max` and `sum` they are states, as they are; otherwise out is divided and lse is
/// optional.
struct Destination {
  OutputView4 out, lse, max, sum;

  bool wants_state() const { return max.present(); }
};

/// Which row of the outputs.
struct RowPlace {
  std::int64_t batch, head, row;
};

/// Stores one row's state; `out` is used up. Sink logits join here, last.
template <class T>
void store_row(const View4& sinks, const Destination& to, const RowPlace& place, T max, T sum, T* out);

/// A row that is no query of its sequence, beyond its query length: it sees no key.
template <class T>
void store_padding_row(const Destination& to, const RowPlace& place);

}  // namespace attn

// Where a call's results go.
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

}  // namespace attn

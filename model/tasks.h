// A loop over independent indices, shared by an executor's threads.
#pragma once

#include <cstdint>

#include "attn/executor.h"

namespace attn::model {

/// Calls body(index, worker) for each index from 0 to `count`. `work` is that of all, in multiply-adds: little of it stays on
/// this thread.
template <class Body>
void for_each(Executor& executor, std::int64_t count, double work, const Body& body) {
  if (count <= 1 || work < executor.least_work()) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  executor.run(
      count,
      [](void* context, std::int64_t index, int worker) { (*static_cast<const Body*>(context))(index, worker); },
      const_cast<Body*>(&body));
}

/// Range `index` of `ranges` that 0 … total is cut into: neighbours stay together, so that each thread reads memory in its
/// order.
struct Range {
  std::int64_t begin, end;
};
inline Range range_of(std::int64_t total, std::int64_t ranges, std::int64_t index) {
  return {total * index / ranges, total * (index + 1) / ranges};
}

}  // namespace attn::model

#include "src/run/task_ranges.h"

#include <new>

namespace attn {
namespace {

struct Range {
  std::uint64_t first, end;

  explicit Range(std::uint64_t packed) : first(packed >> 32), end(packed & 0xFFFFFFFF) {}
  Range(std::uint64_t first, std::uint64_t end) : first(first), end(end) {}
  bool empty() const { return first >= end; }
  std::uint64_t packed() const { return first << 32 | end; }
};

}  // namespace

void TaskRanges::carve(std::int64_t tasks, int workers, Carver* carver) {
  workers_ = workers;
  ranges_ = carver->take<std::atomic<std::uint64_t>>(workers);
  if (!ranges_) return;
  for (int w = 0; w < workers; ++w) {
    const Range range(static_cast<std::uint64_t>(tasks * w / workers),
                      static_cast<std::uint64_t>(tasks * (w + 1) / workers));
    new (&ranges_[w]) std::atomic<std::uint64_t>(range.packed());
  }
}

std::int64_t TaskRanges::take_first(std::atomic<std::uint64_t>* range) {
  std::uint64_t current = range->load(std::memory_order_relaxed);
  for (;;) {
    const Range here(current);
    if (here.empty()) return -1;
    if (range->compare_exchange_weak(current, Range(here.first + 1, here.end).packed(), std::memory_order_relaxed))
      return static_cast<std::int64_t>(here.first);
  }
}

std::int64_t TaskRanges::take_last(std::atomic<std::uint64_t>* range) {
  std::uint64_t current = range->load(std::memory_order_relaxed);
  for (;;) {
    const Range here(current);
    if (here.empty()) return -1;
    if (range->compare_exchange_weak(current, Range(here.first, here.end - 1).packed(), std::memory_order_relaxed))
      return static_cast<std::int64_t>(here.end - 1);
  }
}

std::int64_t TaskRanges::take(int own) {
  if (const std::int64_t task = take_first(&ranges_[own]); task >= 0) return task;
  for (int other = 1; other < workers_; ++other) {
    if (const std::int64_t task = take_last(&ranges_[(own + other) % workers_]); task >= 0) return task;
  }
  return -1;
}

}  // namespace attn

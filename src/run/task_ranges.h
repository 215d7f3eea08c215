// Tasks in ranges of neighbours, one a worker; who is done with its own takes from the ends of the others'.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/run/scratch.h"

namespace attn {

class TaskRanges {
 public:
  /// At most as many tasks as a range can count.
  static constexpr std::int64_t kMostTasks = (std::int64_t{1} << 32) - 1;

  /// Takes the memory; called once to measure and once for real.
  void carve(std::int64_t tasks, int workers, Carver* carver);

  /// The next task for whoever works on range `own`; −1 where none is left.
  std::int64_t take(int own);

 private:
  std::int64_t take_first(std::atomic<std::uint64_t>* range);
  std::int64_t take_last(std::atomic<std::uint64_t>* range);

  int workers_ = 0;
  std::atomic<std::uint64_t>* ranges_ = nullptr;  // first << 32 | end
};

}  // namespace attn

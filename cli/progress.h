// Progress on stderr, for work that takes long.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "attn/executor.h"

namespace attn::cli {

/// One line on stderr that says how much of `expected` is done, first after a second and then five times a second. Silent
/// where stderr is not a terminal. Any thread may count.
class ProgressLine {
 public:
  /// `things` are what is counted, as in "tokens".
  ProgressLine(std::int64_t expected, std::string things);

  /// Wipes the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// So many more are done.
  void count(std::int64_t more = 1);

 private:
  using Clock = std::chrono::steady_clock;
  const std::int64_t expected_;
  const std::string things_;
  const bool shown_;
  const Clock::time_point started_ = Clock::now();
  std::atomic<std::int64_t> done_{0}, due_milliseconds_{1000};
};

/// Hands tasks on to another executor and shows how many of `expected` are done. One call of the library at a time.
class ProgressExecutor : public Executor {
 public:
  /// `inner` must outlive this; `expected` is Plan::tasks.
  ProgressExecutor(Executor& inner, std::int64_t expected) : inner_(inner), line_(expected, "tasks") {}

  int threads() const override { return inner_.threads(); }
  double least_work() const override { return inner_.least_work(); }
  void run(std::int64_t count, void (*task)(void* context, std::int64_t index, int worker), void* context) override;

 private:
  Executor& inner_;
  ProgressLine line_;
};

}  // namespace attn::cli

// Progress on stderr, for work that takes long.
#pragma once

#include <cstdint>
#include <memory>

#include "attn/executor.h"

namespace attn::cli {

/// Hands tasks on to another executor and shows on stderr how many of `expected` are done, once the work has taken
/// longer than a second. Says nothing where stderr is not a terminal. One call of the library at a time.
class ProgressExecutor : public Executor {
 public:
  /// `inner` must outlive this; `expected` is Plan::tasks.
  ProgressExecutor(Executor& inner, std::int64_t expected);

  /// Wipes the line.
  ~ProgressExecutor() override;
  ProgressExecutor(const ProgressExecutor&) = delete;
  ProgressExecutor& operator=(const ProgressExecutor&) = delete;

  int threads() const override { return inner_.threads(); }
  double least_work() const override { return inner_.least_work(); }
  void run(std::int64_t count, void (*task)(void* context, std::int64_t index, int worker), void* context) override;

 private:
  struct Counter;

  Executor& inner_;
  std::unique_ptr<Counter> counter_;  // absent where nothing is shown
};

}  // namespace attn::cli

// Progress on stderr, for work that takes long.
#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>

namespace attn::cli {

// Shared by all workers. Whoever finishes a task when the next line is due prints it.
struct ProgressExecutor::Counter {
  using Clock = std::chrono::steady_clock;

  explicit Counter(std::int64_t tasks) : expected(std::max<std::int64_t>(tasks, 1)) {}

  const std::int64_t expected;
  const Clock::time_point started = Clock::now();
  std::atomic<std::int64_t> done{0};
  std::atomic<std::int64_t> due_milliseconds{1000};

  void count_one() {
    const std::int64_t now_done = ++done;
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count();
    std::int64_t due = due_milliseconds.load();
    if (elapsed < due || !due_milliseconds.compare_exchange_strong(due, elapsed + 200)) return;
    const double share = std::min(1.0, static_cast<double>(now_done) / static_cast<double>(expected));
    std::fprintf(stderr, "\r%3.0f %% of the tasks, about %.0f s to go \x1b[K", 100 * share,
                 static_cast<double>(elapsed) / 1000 * (1 - share) / share);
  }

  bool has_printed() const { return due_milliseconds.load() > 1000; }
};

ProgressExecutor::ProgressExecutor(Executor& inner, std::int64_t expected)
    : inner_(inner), counter_(isatty(STDERR_FILENO) != 0 ? std::make_unique<Counter>(expected) : nullptr) {}

ProgressExecutor::~ProgressExecutor() {
  if (counter_ && counter_->has_printed()) std::fputs("\r\x1b[K", stderr);
}

void ProgressExecutor::run(std::int64_t count, void (*task)(void* context, std::int64_t index, int worker),
                           void* context) {
  if (!counter_) return inner_.run(count, task, context);

  struct Counted {
    void (*task)(void* context, std::int64_t index, int worker);
    void* context;
    Counter* counter;
  } counted{task, context, counter_.get()};
  inner_.run(
      count,
      [](void* opaque, std::int64_t index, int worker) {
        const auto& counted = *static_cast<Counted*>(opaque);
        counted.task(counted.context, index, worker);
        counted.counter->count_one();
      },
      &counted);
}

}  // namespace attn::cli

// Progress on stderr, for work that takes long.
#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace attn::cli {
namespace {

constexpr std::int64_t kFirstMilliseconds = 1000, kNextMilliseconds = 200;

}  // namespace

ProgressLine::ProgressLine(std::int64_t expected, std::string things)
    : expected_(std::max<std::int64_t>(expected, 1)),
      things_(std::move(things)),
      shown_(isatty(STDERR_FILENO) != 0),
      due_milliseconds_(kFirstMilliseconds) {}

ProgressLine::~ProgressLine() {
  if (shown_ && due_milliseconds_.load() > kFirstMilliseconds) std::fputs("\r\x1b[K", stderr);
}

// Whoever counts when the next line is due prints it.
void ProgressLine::count(std::int64_t more) {
  if (!shown_) return;
  const std::int64_t now_done = done_ += more;
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_).count();
  std::int64_t due = due_milliseconds_.load();
  if (elapsed < due || !due_milliseconds_.compare_exchange_strong(due, elapsed + kNextMilliseconds)) return;
  const double share = std::min(1.0, static_cast<double>(now_done) / static_cast<double>(expected_));
  std::fprintf(stderr, "\r%3.0f %% of the %s, about %.0f s to go \x1b[K", 100 * share, things_.c_str(),
               static_cast<double>(elapsed) / 1000 * (1 - share) / share);
}

void ProgressExecutor::run(std::int64_t count, void (*task)(void* context, std::int64_t index, int worker),
                           void* context) {
  struct Counted {
    void (*task)(void* context, std::int64_t index, int worker);
    void* context;
    ProgressLine* line;
  } counted{task, context, &line_};
  inner_.run(
      count,
      [](void* opaque, std::int64_t index, int worker) {
        const auto& counted = *static_cast<Counted*>(opaque);
        counted.task(counted.context, index, worker);
        counted.line->count();
      },
      &counted);
}

}  // namespace attn::cli

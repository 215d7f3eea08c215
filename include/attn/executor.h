// Who runs the tasks: the library's own threads, the caller's thread alone, or a host's pool.
#pragma once

#include <cstdint>
#include <memory>

#include "attn/export.h"

namespace ATTN_EXPORT attn {

/// Runs independent tasks. A host with a pool of its own implements this and passes it in
/// AttentionOptions::executor. No result depends on the number of threads or on who runs which task.
class Executor {
 public:
  virtual ~Executor() = default;

  /// The most tasks that may run at once, at least 1. Scratch memory grows with it.
  virtual int threads() const = 0;

  /// Calls `task(context, index, worker)` once for each index in [0, count) and returns when all have
  /// returned. `worker` is in [0, threads()), and no two calls that overlap in time share it. Tasks do not
  /// throw. Claiming indices in ascending order is fastest: neighbours share packed keys.
  virtual void run(std::int64_t count, void (*task)(void* context, std::int64_t index, int worker),
                   void* context) = 0;

  /// Multiply-adds below which a call does not ask the executor and runs on the calling thread: waking others would
  /// take longer. A call of one task does so, too.
  virtual double least_work() const { return 0; }
};

/// What pools are not woken for: about 30 µs of one thread's work, where two threads begin to win on the machines
/// measured (waking one takes 5 to 20 µs).
inline constexpr double kLeastSharedWork = 1.5e6;

/// The calling thread alone; no other is ever woken.
Executor& inline_executor();

/// A pool of `threads` threads, the caller included; 0 or less means one a
/// processor that this process may use, and more than 1,024 means 1,024.
/// A thread that is late to wake up is not waited for: the others do its share. Calls from several threads
/// are safe; one that finds the pool busy runs its tasks on its own thread. Safe across fork: a child runs
/// on its own thread alone.
std::unique_ptr<Executor> make_thread_pool(int threads = 0, double least_work = kLeastSharedWork);

/// The pool that calls without an executor use: made at first use, one thread a processor, or as many as
/// the environment variable ATTN_THREADS says (ignored where it is no number above 0).
Executor& default_executor();

}  // namespace attn

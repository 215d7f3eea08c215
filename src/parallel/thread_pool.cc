// The default executor: a pool that waits only for those who came.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "attn/executor.h"

namespace attn {
namespace {

class InlineExecutor final : public Executor {
 public:
  int threads() const override { return 1; }
  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    for (std::int64_t i = 0; i < count; ++i) task(context, i, 0);
  }
};

// How often this process is a fork of its parent: threads do not survive a fork, and locks may be held by the lost.
std::atomic<int> forks{0};

int count_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

// One call's tasks. It lies on the caller's stack: nobody touches it who has not joined.
struct Job {
  std::int64_t count;
  void (*task)(void* context, std::int64_t index, int worker);
  void* context;
  std::atomic<std::int64_t> next{0};
  int workers = 1;              // who joined, the caller included: also the next one's number
  std::atomic<int> running{0};  // threads inside, the caller not included; changed under the lock

  void work(int worker) {
    for (std::int64_t i = next++; i < count; i = next++) task(context, i, worker);
  }
};

// How long a thread without work stays awake.
constexpr std::chrono::microseconds kAwake{50};

// Tells the processor that this is a loop that waits.
void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Until `happened`, or until it is time to sleep.
template <class Happened>
void wait_awake(const Happened& happened) {
  const auto until = std::chrono::steady_clock::now() + kAwake;
  while (!happened() && std::chrono::steady_clock::now() < until) pause();
}

// The threads of a pool and what they share.
class Crew {
 public:
  explicit Crew(int threads) : threads_(threads) {}

  ~Crew() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // Runs the job on the calling thread and on whoever wakes up in time.
  void share(Job* job) {
    std::int64_t asleep = 0;
    {
      const std::lock_guard lock(mutex_);
      start_workers();
      job_ = job;
      posted_.fetch_add(1, std::memory_order_relaxed);
      asleep = asleep_;
    }
    const std::int64_t wanted = std::min<std::int64_t>(job->count, threads_) - 1;
    for (std::int64_t i = std::min(wanted, asleep); i > 0; --i) wake_.notify_one();
    job->work(0);
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr;  // who wakes up from now on is too late, and is not waited for
    }
    wait_awake([job] { return job->running.load(std::memory_order_relaxed) == 0; });
    std::unique_lock lock(mutex_);  // also where nobody runs any more: the last one may still be about to leave
    done_.wait(lock, [job] { return job->running == 0; });
  }

 private:
  // At first use. Where the system refuses threads, those there are do the work.
  void start_workers() {
    if (started_) return;
    started_ = true;
    try {
      while (static_cast<int>(workers_.size()) < threads_ - 1) workers_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
    }
  }

  bool may_join() const { return stopping_ || (job_ && job_->workers < threads_); }

  // First awake: where calls follow each other closely, as in a model's layers, the next one is there within microseconds,
  // and waking from sleep would take longer than that. (Decoding with SmolLM2 gains a fifth.)
  void wait_for_job(std::unique_lock<std::mutex>& lock) {
    if (may_join()) return;
    const std::uint64_t seen = posted_.load(std::memory_order_relaxed);
    lock.unlock();
    wait_awake([&] { return posted_.load(std::memory_order_relaxed) != seen; });
    lock.lock();
    ++asleep_;
    wake_.wait(lock, [this] { return may_join(); });
    --asleep_;
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wait_for_job(lock);
      if (stopping_) return;
      Job* job = job_;
      const int worker = job->workers++;
      ++job->running;
      lock.unlock();
      job->work(worker);
      lock.lock();
      if (job_ == job) job_ = nullptr;  // no index is left: nobody needs to join any more
      if (--job->running == 0) done_.notify_one();
    }
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> workers_;
  Job* job_ = nullptr;
  std::atomic<std::uint64_t> posted_{0};  // jobs so far, for those who wait awake
  std::int64_t asleep_ = 0;
  bool started_ = false;
  bool stopping_ = false;
};

class ThreadPool final : public Executor {
 public:
  ThreadPool(int threads, double least_work)
      : threads_(threads), least_work_(least_work), born_(count_forks()), crew_(std::make_unique<Crew>(threads)) {}

  ~ThreadPool() override {
    // In a forked child the crew's threads are gone while its locks look waited on: it can't be destroyed, only left.
    if (born_ != count_forks()) static_cast<void>(crew_.release());
  }

  int threads() const override { return threads_; }
  double least_work() const override { return least_work_; }

  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    if (count <= 0) return;
    const bool alone = threads_ == 1 || count == 1 || born_ != count_forks() || busy_.exchange(true);
    if (alone) return inline_executor().run(count, task, context);
    Job job{count, task, context};
    crew_->share(&job);
    busy_.store(false);
  }

 private:
  const int threads_;
  const double least_work_;
  const int born_;
  std::atomic<bool> busy_{false};
  std::unique_ptr<Crew> crew_;
};

int processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

constexpr int kMostThreads = 1024;

int default_threads() {
  const char* wish = std::getenv("ATTN_THREADS");
  int threads = 0;
  if (wish) std::from_chars(wish, wish + std::strlen(wish), threads);
  return threads > 0 ? threads : 0;
}

}  // namespace

Executor& inline_executor() {
  static InlineExecutor executor;
  return executor;
}

std::unique_ptr<Executor> make_thread_pool(int threads, double least_work) {
  return std::make_unique<ThreadPool>(std::min(threads > 0 ? threads : processors(), kMostThreads), least_work);
}

Executor& default_executor() {
  // Never destroyed: threads may still be inside calls when the process ends.
  static Executor& pool = *make_thread_pool(default_threads()).release();
  return pool;
}

}  // namespace attn

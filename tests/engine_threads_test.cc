// What an executor promises, and what the library asks of one: any order, any worker, nested, from many threads,
// after a fork.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "engine_problem.h"
#include "src/run/task_ranges.h"

namespace attn::tests {
namespace {

// Counts what runs, and notices two tasks at once on one worker.
class Tally {
 public:
  Tally(std::int64_t count, int threads) : counts_(count), busy_(threads) {}

  void run_on(Executor* executor) { executor->run(static_cast<std::int64_t>(counts_.size()), &Tally::task, this); }

  bool once_each() const {
    return !broken_ && std::all_of(counts_.begin(), counts_.end(), [](const auto& n) { return n == 1; });
  }

 private:
  static void task(void* context, std::int64_t index, int worker) {
    auto& self = *static_cast<Tally*>(context);
    if (worker < 0 || worker >= static_cast<int>(self.busy_.size())) {
      self.broken_ = true;
      return;
    }
    if (self.busy_[worker].exchange(true)) self.broken_ = true;
    ++self.counts_[index];
    self.busy_[worker] = false;
  }

  std::vector<std::atomic<int>> counts_;
  std::vector<std::atomic<bool>> busy_;
  std::atomic<bool> broken_{false};
};

TEST(Threads, APoolRunsEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const auto pool = make_thread_pool(threads, 0);
    ASSERT_EQ(pool->threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 3, 7, 8, 9, 1000}) {
      for (int again = 0; again < effort(20); ++again) {
        Tally tally(count, threads);
        tally.run_on(pool.get());
        ASSERT_TRUE(tally.once_each()) << threads << " threads, " << count << " tasks";
      }
    }
  }
}

TEST(Threads, TheInlineExecutorRunsInOrderOnTheCaller) {
  std::vector<std::int64_t> order;
  const auto append = [](void* context, std::int64_t index, int worker) {
    EXPECT_EQ(worker, 0);
    static_cast<std::vector<std::int64_t>*>(context)->push_back(index);
  };
  inline_executor().run(4, append, &order);
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(inline_executor().threads(), 1);
  EXPECT_GE(default_executor().threads(), 1);
  EXPECT_GE(make_thread_pool()->threads(), 1);
}

TEST(Threads, APoolTakesCallsFromSeveralThreadsAtOnce) {
  const auto pool = make_thread_pool(3, 0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int again = 0; again < effort(100); ++again) {
        Tally tally(50, pool->threads());
        tally.run_on(pool.get());
        if (!tally.once_each()) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// A task that calls the pool again, as a host's own code inside a task may.
TEST(Threads, APoolTakesCallsFromItsOwnTasks) {
  struct Outer {
    Executor* pool;
    std::atomic<int> right{0};
  } outer{make_thread_pool(3, 0).release()};
  const auto task = [](void* context, std::int64_t /*index*/, int /*worker*/) {
    auto& self = *static_cast<Outer*>(context);
    Tally tally(20, self.pool->threads());
    tally.run_on(self.pool);
    if (tally.once_each()) ++self.right;
  };
  outer.pool->run(30, task, &outer);
  EXPECT_EQ(outer.right, 30);
  delete outer.pool;
}

TEST(Threads, PoolsComeAndGo) {
  for (int i = 0; i < effort(100); ++i) {
    const auto unused = make_thread_pool(4, 0);
    const auto used = make_thread_pool(4, 0);
    Tally tally(i % 7, 4);
    tally.run_on(used.get());
    EXPECT_TRUE(tally.once_each());
  }
}

Problem long_problem() {
  Problem p = normal_problem({2, 4, 2, 150, 600, 16, 16}, 1);
  p.plain.causal = true;
  p.plain.alignment = Alignment::bottom_right;
  return p;
}

// Any order of tasks, and any worker that is free.
class Shuffling final : public Executor {
 public:
  Shuffling(int threads, std::uint64_t seed) : threads_(threads), random_(seed) {}
  int threads() const override { return threads_; }
  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    std::vector<std::int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::int64_t index : order) task(context, index, static_cast<int>(random_() % threads_));
  }

 private:
  int threads_;
  std::mt19937_64 random_;
};

class Reversing final : public Executor {
 public:
  int threads() const override { return 5; }
  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    for (std::int64_t index = count - 1; index >= 0; --index) task(context, index, 4);
  }
};

// A thread a worker, each with every n-th task: heads are in work at once that a pool would take one by one.
class Striding final : public Executor {
 public:
  int threads() const override { return 4; }
  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 4; ++worker) {
      workers.emplace_back([=] {
        for (std::int64_t index = worker; index < count; index += 4) task(context, index, 3 - worker);
      });
    }
    for (std::thread& worker : workers) worker.join();
  }
};

TEST(Threads, AHostsExecutorMayRunTasksInAnyOrder) {
  Problem p = long_problem();
  p.plain.executor = &inline_executor();
  const Answer expected = attend(p);
  Tensor expected_table(DType::f32, {2, 4, 150, 600});
  ASSERT_TRUE(weights(p.q.view(), p.k.view(), expected_table.output(), p.options()).ok());
  Shuffling few(3, 1), more(7, 2);
  Reversing reversing;
  Striding striding;
  for (Executor* executor : {static_cast<Executor*>(&few), static_cast<Executor*>(&more),
                             static_cast<Executor*>(&reversing), static_cast<Executor*>(&striding)}) {
    p.plain.executor = executor;
    for (const Isa isa : {Isa::scalar, current_isa()}) {
      const ForcedIsa forced(isa);
      if (isa == Isa::scalar && effort(100) < 100) continue;
      for (int again = 0; again < 3; ++again) EXPECT_TRUE(same_bits(attend(p), expected));
    }
    Tensor table(DType::f32, {2, 4, 150, 600});
    ASSERT_TRUE(weights(p.q.view(), p.k.view(), table.output(), p.options()).ok());
    EXPECT_TRUE(same_bits(table, expected_table));
  }
}

TEST(Threads, ManyThreadsMayCallForwardAtOnce) {
  const Problem p = long_problem();
  const Answer expected = attend(p);
  const auto shared_pool = make_thread_pool(3, 0);
  std::vector<Answer> answers(6);
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    callers.emplace_back([&, i] {
      Problem mine = p;
      mine.plain.executor = i % 2 == 0 ? shared_pool.get() : nullptr;
      answers[i] = attend(mine);
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const Answer& answer : answers) EXPECT_TRUE(same_bits(answer, expected));
}

// Runs `right` in a child process: true where it says so in time.
bool holds_in_child(const std::function<bool()>& right) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(right() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Threads do not survive a fork; calls in the child must neither hang nor differ, and the parent goes on.
TEST(Threads, AChildProcessRunsForward) {
  Problem p = long_problem();
  const auto pool = make_thread_pool(3, 0);
  p.plain.executor = pool.get();
  const Answer expected = attend(p);  // the pool's threads are there now
  Problem with_default = p;
  with_default.plain.executor = nullptr;
  ASSERT_TRUE(same_bits(attend(with_default), expected));
  EXPECT_TRUE(holds_in_child([&] { return static_cast<bool>(same_bits(attend(p), expected)); }));
  EXPECT_TRUE(holds_in_child([&] { return static_cast<bool>(same_bits(attend(with_default), expected)); }));
  EXPECT_TRUE(same_bits(attend(p), expected));
}

TEST(Threads, AChildProcessMayDestroyThePool) {
  auto pool = make_thread_pool(3, 0);
  Tally tally(50, 3);
  tally.run_on(pool.get());
  std::this_thread::sleep_for(
      std::chrono::milliseconds(100));  // until its threads sleep: what they sleep on is copied
  EXPECT_TRUE(holds_in_child([&] {
    pool.reset();
    return true;
  }));
}

// Worker numbers are any below threads(), however few tasks there are.
TEST(Threads, AHostMayHaveMoreWorkersThanTasks) {
  for (const std::int64_t queries : {1, 3, 150}) {
    Problem p = normal_problem({1, 2, 2, queries, 600, 16, 16}, 1);
    const Answer expected = attend(p);
    Shuffling many(100, 2);
    p.plain.executor = &many;
    // In a child, since what goes wrong here is memory.
    EXPECT_TRUE(holds_in_child([&] { return static_cast<bool>(same_bits(attend(p), expected)); })) << queries;
  }
}

// Every task once, by whoever asks; a worker alone takes those of all.
TEST(TaskRanges, HandOutEveryTaskOnce) {
  for (const std::int64_t tasks : {0, 1, 2, 7, 1000}) {
    for (const int workers : {1, 2, 3, 8}) {
      Carver measure;
      TaskRanges ranges;
      ranges.carve(tasks, workers, &measure);
      std::vector<std::byte> memory(measure.used() + Carver::kAlignment);
      Carver carver(memory.data());
      ranges.carve(tasks, workers, &carver);
      std::vector<std::atomic<int>> taken(tasks);
      std::vector<std::thread> threads;
      for (int w = 0; w < workers; w += 2) {  // some never come
        threads.emplace_back([&ranges, &taken, w] {
          for (std::int64_t task = ranges.take(w); task >= 0; task = ranges.take(w)) ++taken[task];
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (std::int64_t task = 0; task < tasks; ++task) ASSERT_EQ(taken[task], 1) << task << " of " << tasks;
    }
  }
}

}  // namespace
}  // namespace attn::tests

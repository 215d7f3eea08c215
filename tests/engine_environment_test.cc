// The caller's floating-point environment – flushed denormals, another rounding – changes no bit and is left alone.
#include <gtest/gtest.h>

#include "engine_parts.h"
#include "engine_problem.h"

#if defined(__x86_64__)
#include <xmmintrin.h>

namespace attn::tests {
namespace {

constexpr unsigned kDefault = 0x1F80;
constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
constexpr unsigned kRoundDown = 0x2000, kRoundUp = 0x4000, kRoundToZero = 0x6000;
constexpr unsigned kSettings[] = {kDefault | kFlushToZero | kDenormalsAreZero, kDefault | kRoundDown,
                                  kDefault | kRoundUp, kDefault | kRoundToZero,
                                  kDefault | kRoundUp | kFlushToZero | kDenormalsAreZero};

// The control word for a scope, exception flags aside; and whether it was left as set.
class Environment {
 public:
  explicit Environment(unsigned word) : word_(word) { _mm_setcsr(word); }
  ~Environment() {
    const unsigned left = _mm_getcsr();
    _mm_setcsr(kDefault);
    EXPECT_EQ(left & ~0x3Fu, word_) << "the caller's environment was changed";
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  unsigned word_;
};

// Denormals in values and in products, scales that no float holds exactly.
std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (const double softcap : {0.0, 3.3}) {
    for (const DType kv : {DType::f32, DType::bf16}) {
      Problem p = normal_problem({1, 3, 1, 33, 290, 11, 9}, 2, DType::f32, kv);
      for (std::int64_t i = 0; i < p.v.size(); i += 3) p.v.set(i, p.v.get(i) * 1e-39);
      for (std::int64_t i = 0; i < p.k.size(); i += 5) p.k.set(i, 1e-40);
      if (softcap != 0) p.plain.softcap = softcap;
      p.plain.causal = true;
      p.plain.alignment = Alignment::bottom_right;
      p.alibi = normal_tensor(DType::f32, {3}, 5);
      p.sinks = normal_tensor(DType::f32, {3}, 6);
      all.push_back(p);
    }
  }
  Problem wide = normal_problem({1, 1, 1, 9, 70, 7, 5}, 3, DType::f64, DType::f64);
  for (std::int64_t i = 0; i < wide.v.size(); i += 3) wide.v.set(i, wide.v.get(i) * 1e-309);
  all.push_back(wide);
  return all;
}

TEST(Environment, ChangesNoBitOfForward) {
  const auto pool = make_thread_pool(3, 0);
  for (Problem& problem : problems()) {
    const Answer expected = attend(problem);
    for (const unsigned setting : kSettings) {
      for (Executor* executor : {static_cast<Executor*>(pool.get()), &inline_executor()}) {
        for (const Isa isa : isas_with_equal_bits()) {
          const ForcedIsa forced(isa);
          problem.plain.executor = executor;
          Answer answer = expected;
          const AttentionOptions options = problem.options();
          Status status;
          {
            const Environment environment(setting);
            status = forward(problem.q.view(), problem.k.view(), problem.v.view(), answer.out.output(), options,
                             answer.lse.output());
          }
          ASSERT_TRUE(status.ok());
          EXPECT_TRUE(same_bits(answer, expected)) << std::hex << setting << ' ' << name_of(isa);
        }
      }
    }
  }
}

// Everything else that computes: weights, states, their merge, and the merge of finished results.
std::vector<Tensor> all_other_results(const Problem& problem, unsigned setting) {
  const Sizes& s = problem.sizes;
  const Problem first = keys_of(problem, 0, s.keys / 2), second = keys_of(problem, s.keys / 2, s.keys - s.keys / 2);
  StateParts a(first), b(second);
  Tensor table(problem.compute(), {s.batch, s.query_heads, s.queries, s.keys});
  Tensor out(problem.compute(), {s.batch, s.query_heads, s.queries, s.value_dim}), merged = out;
  Tensor lse(problem.compute(), {s.batch, s.query_heads, s.queries}), merged_lse = lse;
  const AttentionOptions options = problem.options(), of_first = first.options(), of_second = second.options();
  std::vector<Status> done;
  {
    const Environment environment(setting);
    done.push_back(weights(problem.q.view(), problem.k.view(), table.output(), options));
    done.push_back(forward_state(first.q.view(), first.k.view(), first.v.view(), a.state(), of_first));
    done.push_back(forward_state(second.q.view(), second.k.view(), second.v.view(), b.state(), of_second));
    done.push_back(finish_state(a.state(), out.output(), lse.output()));
    const TensorView outs[] = {out.view(), out.view()}, lses[] = {lse.view(), lse.view()};
    done.push_back(merge(outs, lses, merged.output(), merged_lse.output()));
    done.push_back(merge_states(a.state(), b.state()));
  }
  for (const Status& status : done) EXPECT_TRUE(status.ok()) << status.message();
  return {table, out, lse, merged, merged_lse, a.max, a.sum, a.out};
}

TEST(Environment, ChangesNoBitOfAnythingElse) {
  for (const Problem& problem : problems()) {
    const std::vector<Tensor> expected = all_other_results(problem, kDefault);
    for (const unsigned setting : kSettings) {
      const std::vector<Tensor> actual = all_other_results(problem, setting);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(same_bits(actual[i], expected[i])) << "result " << i << ", setting " << std::hex << setting;
      }
    }
  }
}

}  // namespace
}  // namespace attn::tests
#endif

// Every option that is accepted has its effect: one row of a table an option, on each target, for out, lse and
// weights.
#include <gtest/gtest.h>

#include <functional>

#include "engine_problem.h"

namespace attn::tests {
namespace {

struct Toggle {
  const char* name;
  std::function<void(Problem*)> set;
  std::function<void(Problem*)> before = [](Problem*) {};  // what the option needs to have a meaning at all
};

Tensor filled(DType dtype, std::vector<std::int64_t> shape, double value) {
  Tensor tensor(dtype, std::move(shape));
  tensor.fill([value] { return value; });
  return tensor;
}

void align(Problem* p) { p->plain.alignment = Alignment::bottom_right; }
void causal(Problem* p) {
  align(p);
  p->plain.causal = true;
}
void window(Problem* p) {
  align(p);
  p->plain.window_left = 2;
}

std::vector<Toggle> toggles() {
  const auto by_position = [](Problem* p) { p->plain.causal = true, p->plain.alignment = Alignment::offset; };
  return {
      {"scale", [](Problem* p) { p->plain.scale = 0.125; }},
      {"softcap", [](Problem* p) { p->plain.softcap = 0.5; }},
      {"causal", [](Problem* p) { p->plain.causal = true; }, align},
      {"alignment", [](Problem* p) { p->plain.alignment = Alignment::top_left; }, causal},
      {"position_offset", [](Problem* p) { p->plain.position_offset = 5; }, by_position},
      {"position_offsets",
       [](Problem* p) {
         p->position_offsets = {5, 9};
       },
       by_position},
      {"window_left", [](Problem* p) { p->plain.window_left = 1; }, align},
      {"window_right", [](Problem* p) { p->plain.window_right = 1; }, align},
      {"sink_tokens", [](Problem* p) { p->plain.sink_tokens = 1; }, window},
      {"mask",
       [](Problem* p) {
         p->mask = filled(DType::boolean, {1, 1, 1, 20}, 1);
         p->mask->set(3, 0);
       }},
      {"bias",
       [](Problem* p) {
         p->bias = normal_tensor(DType::f32, {1, 1, 1, 20}, 4);
       }},
      {"bias of f16",
       [](Problem* p) {
         p->bias = normal_tensor(DType::f16, {2, 1, 12, 1}, 4).in(DType::bf16);
       },
       [](Problem* p) { p->sinks = filled(DType::f32, {4}, 0); }},
      {"alibi", [](Problem* p) { p->alibi = filled(DType::f32, {4}, 0.25); }, align},
      {"sinks", [](Problem* p) { p->sinks = filled(DType::f32, {4}, 1); }},
      {"key_lengths",
       [](Problem* p) {
         p->key_lengths = {20, 7};
       }},
      {"query_lengths",
       [](Problem* p) {
         p->query_lengths = {12, 7};
       }},
      {"key_offset", [](Problem* p) { p->plain.key_offset = 3; }, by_position},
  };
}

struct Results {
  Answer answer;
  Tensor weights;
};

Results run(const Problem& p) {
  Results results{attend(p), Tensor(DType::f32, {2, 4, 12, 20})};
  const Status status = weights(p.q.view(), p.k.view(), results.weights.output(), p.options());
  EXPECT_TRUE(status.ok()) << status.message();
  return results;
}

TEST(Options, EachChangesOutLseAndWeights) {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    for (const Toggle& toggle : toggles()) {
      Problem problem = normal_problem({2, 4, 2, 12, 20, 8, 8}, 1);
      toggle.before(&problem);
      const Results without = run(problem);
      toggle.set(&problem);
      const Results with = run(problem);
      EXPECT_FALSE(same_bits(with.answer.out, without.answer.out)) << toggle.name << ' ' << name_of(isa);
      EXPECT_FALSE(same_bits(with.answer.lse, without.answer.lse)) << toggle.name << ' ' << name_of(isa);
      EXPECT_FALSE(same_bits(with.weights, without.weights)) << toggle.name << ' ' << name_of(isa);
    }
  }
}

TEST(Options, PackedStartsChangeTheResult) {
  Problem problem = normal_problem({1, 2, 1, 12, 20, 8, 8}, 1);
  const Answer without = attend(problem);
  problem.query_starts = {0, 5, 12};
  problem.key_starts = {0, 9, 20};
  EXPECT_FALSE(same_bits(attend(problem).out, without.out));
}

// The executor that is asked to run is the one that runs.
TEST(Options, TheExecutorIsUsed) {
  class Counting final : public Executor {
   public:
    int threads() const override { return 2; }
    void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
      ++calls;
      inline_executor().run(count, task, context);
    }
    int calls = 0;
  } counting;
  Problem problem = normal_problem({2, 4, 2, 12, 20, 8, 8}, 1);
  problem.plain.executor = &counting;
  run(problem);
  EXPECT_EQ(counting.calls, 2);  // forward and weights
}

}  // namespace
}  // namespace attn::tests

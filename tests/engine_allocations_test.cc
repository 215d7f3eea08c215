// Calls after the first take nothing from the heap.
#include <gtest/gtest.h>

#include "allocations.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

// The most bytes that one `new` asks for in a second call like the first.
std::size_t largest_of_second_call(const Problem& problem) {
  Tensor out(problem.out_dtype,
             {problem.sizes.batch, problem.sizes.query_heads, problem.sizes.queries, problem.sizes.value_dim});
  const TensorView q = problem.q.view(), k = problem.k.view(), v = problem.v.view();
  const OutputView to = out.output();
  const AttentionOptions options = problem.options();
  for (int call = 0; call < 2; ++call) {
    largest_allocation = 0;
    EXPECT_TRUE(forward(q, k, v, to, options).ok());
  }
  return largest_allocation;
}

TEST(Allocations, ThereAreNoneAfterTheFirstCall) {
  const auto pool = make_thread_pool(2, 0);
  for (const Sizes& sizes : {Sizes{1, 1, 1, 3, 3, 2, 2}, Sizes{1, 1, 1, 16, 16, 64, 64},
                             Sizes{2, 4, 2, 100, 300, 40, 24}, Sizes{1, 4, 1, 1, 5000, 32, 32}}) {
    for (Executor* executor : {&inline_executor(), pool.get()}) {
      Problem problem = normal_problem(sizes, 1);
      problem.plain.executor = executor;
      EXPECT_EQ(largest_of_second_call(problem), 0U) << sizes.queries << " queries, " << sizes.keys << " keys";
      problem.plain.causal = true;
      problem.plain.alignment = Alignment::bottom_right;
      problem.bias = normal_tensor(DType::f32, {1, 1, sizes.queries, sizes.keys}, 2);
      EXPECT_EQ(largest_of_second_call(problem), 0U) << "causal with bias, " << sizes.keys << " keys";
    }
  }
}

TEST(Allocations, AreCounted) {
  largest_allocation = 0;
  const std::vector<char> some(100);
  EXPECT_EQ(largest_allocation, 100U) << some.size();
}

}  // namespace
}  // namespace attn::tests

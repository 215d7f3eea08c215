// The bits of a row depend on what it sees and on nothing else: not on the SIMD target, threads, batch or layout.
#include <gtest/gtest.h>

#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

Answer attend_on(Isa isa, const Problem& problem) {
  const ForcedIsa forced(isa);
  return attend(problem);
}

testing::AssertionResult every_target_agrees(const Problem& problem) {
  const Answer expected = attend_on(Isa::scalar, problem);
  for (const Isa isa : isas_with_equal_bits()) {
    if (const auto same = same_bits(attend_on(isa, problem), expected); !same) {
      return testing::AssertionFailure() << name_of(isa) << ": " << same.message();
    }
  }
  return testing::AssertionSuccess();
}

TEST(Bits, AreTheSpecificationsOnEveryTarget) {
  ASSERT_GT(isas_with_equal_bits().size(), 1U) << "no SIMD target with fused multiply-adds here";
  RecipeLimits limits;
  limits.nonfinite = true;
  check_problems("every target equals the specification", 500, limits,
                 [](const Recipe&, const Problem& problem) { return every_target_agrees(problem); });
}

TEST(Bits, OfRowsOfSeveralSegmentsAreTheSpecifications) {
  RecipeLimits limits;
  limits.many_keys = true;
  limits.most_work = 1'000'000;
  check_problems("long rows equal the specification", 80, limits,
                 [](const Recipe&, const Problem& problem) { return every_target_agrees(problem); });
}

TEST(Bits, AreTheSpecificationsForEveryHeadDim) {
  for (std::int64_t d = 1; d <= 300; d += effort(100) < 100 ? 7 : 1) {
    EXPECT_TRUE(every_target_agrees(normal_problem({1, 2, 1, 4, 19, d, 301 - d}, d))) << "Dk " << d;
    EXPECT_TRUE(every_target_agrees(normal_problem({1, 1, 1, 7, 33, 301 - d, d}, d, DType::f32, DType::bf16)))
        << "Dv " << d;
  }
}

// Many keys: a tile's segments are tasks of their own.
TEST(Bits, DoNotDependOnThreads) {
  RecipeLimits limits;
  limits.nonfinite = true;
  RecipeLimits long_rows = limits;
  long_rows.many_keys = true;
  long_rows.most_work = 1'000'000;
  const auto two = make_thread_pool(2, 0), three = make_thread_pool(3, 0), eight = make_thread_pool(8, 0);
  const auto threads_agree = [&](const Recipe&, const Problem& problem) {
    Problem alone = problem;
    alone.plain.executor = &inline_executor();
    const Answer expected = attend(alone);
    for (Executor* executor : {two.get(), three.get(), eight.get()}) {
      alone.plain.executor = executor;
      if (const auto same = same_bits(attend(alone), expected); !same) {
        return testing::AssertionFailure() << executor->threads() << " threads: " << same.message();
      }
    }
    return same_bits(attend(problem), expected);
  };
  check_problems("threads", 150, limits, threads_agree);
  check_problems("threads, long rows", 60, long_rows, threads_agree);
}

TEST(Bits, OfOutDoNotDependOnWhetherLseIsAskedFor) {
  check_problems("without lse", 150, {}, [](const Recipe&, const Problem& p) {
    Tensor out(p.out_dtype, {p.q.shape()[0], p.q.shape()[1], p.q.shape()[2], p.v.shape()[3]});
    const Status status = forward(p.q.view(), p.k.view(), p.v.view(), out.output(), p.options());
    if (!status.ok()) return testing::AssertionFailure() << status.message();
    return same_bits(out, attend(p).out);
  });
}

TEST(Bits, DoNotDependOnLayouts) {
  RecipeLimits limits;
  limits.nonfinite = true;
  limits.most_work = 500'000;
  check_problems("layouts", 60, limits, [](const Recipe&, const Problem& problem) {
    const Answer expected = attend(problem);
    for (const Layout layout : kLayouts) {
      Problem other = problem;
      for (Tensor* tensor : {&other.q, &other.k, &other.v}) *tensor = tensor->in(layout);
      for (auto* tensor : {&other.mask, &other.bias, &other.alibi, &other.sinks}) {
        if (*tensor) *tensor = (*tensor)->in(layout);
      }
      other.out_layout = layout;
      if (const auto same = same_bits(attend(other), expected); !same) {
        return testing::AssertionFailure() << "layout " << static_cast<int>(layout) << ": " << same.message();
      }
    }
    return testing::AssertionSuccess();
  });
}

// The view with stride 0 in one dimension, and the same numbers written out.
TEST(Bits, OfBroadcastInputsAreThoseOfCopies) {
  for (int dimension = 0; dimension < 4; ++dimension) {
    std::vector<std::int64_t> shape{3, 2, 40, 24}, one = shape;
    one[dimension] = 1;
    for (int which = 0; which < 3; ++which) {
      Problem p = normal_problem({3, 2, 2, 40, 40, 24, 24}, 5);
      Tensor* tensors[] = {&p.q, &p.k, &p.v};
      const Tensor single = normal_tensor(DType::f32, one, 17);
      Tensor& full = *tensors[which];
      for (std::int64_t i = 0; i < full.size(); ++i) {
        std::int64_t place[] = {i / (2 * 40 * 24), i / (40 * 24) % 2, i / 24 % 40, i % 24};
        place[dimension] = 0;
        full.set(i, single.get(single.index({place[0], place[1], place[2], place[3]})));
      }
      const Answer expected = attend(p);

      TensorView views[] = {p.q.view(), p.k.view(), p.v.view()};
      views[which] = single.view();
      views[which].shape[dimension] = shape[dimension];
      views[which].strides[dimension] = 0;
      Tensor out(DType::f32, shape);
      const Status status = forward(views[0], views[1], views[2], out.output());
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(same_bits(out, expected.out)) << "dimension " << dimension << " of tensor " << which;
    }
  }
}

}  // namespace
}  // namespace attn::tests

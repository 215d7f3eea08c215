// 16-bit products (AttentionOptions::bf16_products): as accurate as their rounding allows, with bits that depend on
// what a row sees alone, and refused where the machine has none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine_judge.h"
#include "engine_parts.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

class Bf16Products : public testing::Test {
 protected:
  void SetUp() override {
    if (!bf16_products_available()) GTEST_SKIP() << "no 16-bit products here";
  }
};

Problem with_bf16_products(Problem problem) {
  problem.plain.bf16_products = true;
  return problem;
}

// q, k and v rounded to bf16: what these products start from.
Problem rounded(Problem problem) {
  for (Tensor* tensor : {&problem.q, &problem.k, &problem.v}) {
    Tensor bf16(DType::bf16, tensor->shape());
    for (std::int64_t i = 0; i < tensor->size(); ++i) bf16.set(i, tensor->get(i));
    *tensor = bf16;
  }
  return problem;
}

double largest(const Tensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) most = std::max(most, std::abs(tensor.get(i)));
  return most;
}

// Weights are rounded by at most 2^−9 of themselves, so a blend of values is off by at most 2^−9 of the largest one; the
// rest is f32's share.
testing::AssertionResult within_bf16_bound(const Problem& problem) {
  const Answer answer = attend(with_bf16_products(problem));
  const reference::Result expected = judge(rounded(problem));
  const double values = largest(problem.v);
  for (std::int64_t i = 0; i < answer.out.size(); ++i) {
    const double error = std::abs(answer.out.get(i) - expected.out[i]);
    if (!(error <= values * (0x1p-9 + 1e-5) + 1e-6))
      return testing::AssertionFailure() << "out[" << i << "] is off by " << error << "; values reach " << values;
  }
  for (std::int64_t i = 0; i < answer.lse.size(); ++i) {
    const double lse = answer.lse.get(i);
    if (lse == expected.lse[i]) continue;  // −∞
    if (!(std::abs(lse - expected.lse[i]) <= 1e-5 * (1 + std::abs(expected.lse[i]))))
      return testing::AssertionFailure() << "lse[" << i << "] is " << lse << ", not " << expected.lse[i];
  }
  return testing::AssertionSuccess();
}

TEST_F(Bf16Products, AreAsAccurateAsTheirRounding) {
  for (const std::int64_t dim : {1, 2, 15, 16, 17, 31, 32, 33, 64, 80, 128, 255, 256, 300}) {
    EXPECT_TRUE(within_bf16_bound(normal_problem({2, 4, 2, 37, 61, dim, 301 - dim}, dim))) << "Dk " << dim;
  }
  for (const std::int64_t keys : {1, 2, 15, 16, 31, 32, 33, 255, 256, 257, 511, 2048, 2049, 4200}) {
    EXPECT_TRUE(within_bf16_bound(normal_problem({1, 3, 1, 35, keys, 40, 24}, keys))) << "M " << keys;
  }
  for (const std::int64_t queries : {1, 15, 16, 17, 31, 32, 33, 95, 96, 97, 193}) {
    Problem causal = normal_problem({1, 2, 1, queries, queries, 64, 64}, queries, DType::bf16, DType::bf16);
    causal.plain.causal = true;
    EXPECT_TRUE(within_bf16_bound(causal)) << "causal, N = M = " << queries;
  }
  Problem everything = normal_problem({2, 4, 2, 60, 90, 40, 40}, 1, DType::f16, DType::f16);
  everything.plain.causal = true;
  everything.plain.alignment = Alignment::bottom_right;
  everything.plain.window_left = 50;
  everything.plain.sink_tokens = 3;
  everything.plain.softcap = 4;
  everything.plain.scale = 0.3;
  everything.alibi = normal_tensor(DType::f32, {4}, 2, 0.1);
  everything.sinks = normal_tensor(DType::f32, {4}, 3);
  everything.bias = normal_tensor(DType::f32, {1, 4, 60, 90}, 4);
  EXPECT_TRUE(within_bf16_bound(everything));
}

TEST_F(Bf16Products, OfOneKeyReturnItsValue) {
  const Problem problem = normal_problem({1, 2, 2, 5, 1, 24, 40}, 1, DType::bf16, DType::bf16);
  const Answer answer = attend(with_bf16_products(problem));
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t i = 0; i < 5 * 40; ++i)
      EXPECT_EQ(answer.out.get(h * 200 + i), problem.v.get(h * 40 + i % 40)) << "head " << h;
  }
}

RecipeLimits single_precision() {
  RecipeLimits limits;
  limits.double_precision = false;
  limits.nonfinite = true;
  return limits;
}

// NaN, infinities and odd numbers included: hidden keys hold them, too.
TEST_F(Bf16Products, OfRowsAloneHaveTheBitsOfTheWhole) {
  RecipeLimits limits = single_precision();
  limits.packed = false;
  check_problems("bf16 rows alone", 200, limits, [](const Recipe& recipe, const Problem& problem) {
    return rows_alone_agree(with_bf16_products(problem), recipe.seed);
  });
}

TEST_F(Bf16Products, DoNotDependOnThreads) {
  RecipeLimits limits = single_precision();
  limits.many_keys = true;
  limits.most_work = 1'000'000;
  const auto two = make_thread_pool(2, 0), five = make_thread_pool(5, 0);
  check_problems("bf16 threads", 60, limits, [&](const Recipe&, const Problem& recipe_problem) {
    Problem problem = with_bf16_products(recipe_problem);
    problem.plain.executor = &inline_executor();
    const Answer expected = attend(problem);
    for (Executor* executor : {two.get(), five.get()}) {
      problem.plain.executor = executor;
      if (const auto same = same_bits(attend(problem), expected); !same) return same;
    }
    return testing::AssertionSuccess();
  });
}

TEST_F(Bf16Products, AreChosenByTheOptionAlone) {
  const Problem problem = normal_problem({1, 1, 1, 40, 40, 32, 32}, 1);
  EXPECT_FALSE(same_bits(attend(with_bf16_products(problem)).out, attend(problem).out));
  Plan plan;
  AttentionOptions options;
  options.bf16_products = true;
  ASSERT_TRUE(attn::plan(problem.q.view(), problem.k.view(), problem.v.view(), options, &plan).ok());
  EXPECT_EQ(plan.compute, DType::bf16);
}

Status status_of(const Problem& problem) {
  Plan plan;
  AttentionOptions options;
  options.bf16_products = true;
  return attn::plan(problem.q.view(), problem.k.view(), problem.v.view(), options, &plan);
}

TEST(Bf16ProductsRefused, OnTargetsThatHaveNone) {
  for (const Isa isa : available_isas()) {
    if (isa == Isa::avx512) continue;
    const ForcedIsa forced(isa);
    EXPECT_FALSE(bf16_products_available());
    const Status status = status_of(normal_problem({1, 1, 1, 4, 4, 8, 8}, 1));
    ASSERT_FALSE(status.ok()) << name_of(isa);
    EXPECT_NE(status.message().find("bf16_products: "), std::string::npos) << status.message();
  }
}

TEST(Bf16ProductsRefused, ForF64) {
  EXPECT_FALSE(status_of(normal_problem({1, 1, 1, 4, 4, 8, 8}, 1, DType::f64, DType::f64)).ok());
}

}  // namespace
}  // namespace attn::tests

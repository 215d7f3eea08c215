// Every answer is the float64 reference's, within the bound that tests and judges share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine_judge.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

TEST(Accuracy, HoldsForRandomProblems) {
  RecipeLimits limits;
  limits.most_work = 1'000'000;
  check_problems("within the bound", 400, limits,
                 [](const Recipe&, const Problem& problem) { return within_bound(problem, attend(problem)); });
}

// sse4 lacks fused multiply-adds, so its bits are its own; its accuracy is everyone's.
TEST(Accuracy, HoldsOnEveryTarget) {
  RecipeLimits limits;
  limits.most_work = 300'000;
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    check_problems(std::string("within the bound on ") + name_of(isa), 80, limits,
                   [](const Recipe&, const Problem& problem) { return within_bound(problem, attend(problem)); });
  }
}

// Values down to the smallest numbers that there are, beside sinks that take nearly all or nearly nothing.
TEST(Accuracy, HoldsForSubnormalValuesBesideSinks) {
  for (std::uint64_t seed = 0; static_cast<int>(seed) < effort(1000); ++seed) {
    const auto keys = static_cast<std::int64_t>(1 + seed % 7);
    Problem problem = normal_problem({1, 1, 1, 3, keys, 4, 8}, seed);
    problem.v =
        normal_tensor(DType::f32, {1, 1, keys, 8}, seed, std::ldexp(1.0, -149 + static_cast<int>(seed % 15)));
    problem.sinks = Tensor(DType::f32, {1});
    problem.sinks->set(0, static_cast<double>(seed % 17) - 6);
    EXPECT_TRUE(within_bound(problem, attend(problem))) << "seed " << seed;
  }
}

TEST(Accuracy, HoldsForEveryHeadDim) {
  for (std::int64_t d = 1; d <= 300; d += effort(100) < 100 ? 13 : 1) {
    const Problem keys = normal_problem({1, 1, 1, 3, 21, d, 5}, d);
    EXPECT_TRUE(within_bound(keys, attend(keys))) << "Dk " << d;
    const Problem values = normal_problem({1, 2, 1, 3, 21, 5, d}, d, DType::f32, DType::f16);
    EXPECT_TRUE(within_bound(values, attend(values))) << "Dv " << d;
  }
}

TEST(Accuracy, HoldsForEverySizeAroundTheEdgesOfTilesAndBlocks) {
  const std::int64_t sizes[] = {0,    1,    2,    5,    6,    7,    15,   16,   17,   31,   32,
                                33,   63,   64,   65,   95,   96,   97,   98,   127,  128,  129,
                                191,  192,  193,  255,  256,  257,  258,  511,  512,  513,  1023,
                                1024, 1025, 2047, 2048, 2049, 2050, 2303, 2304, 2305, 4096, 4097};
  for (const std::int64_t size : sizes) {
    if (size > 600 && effort(100) < 100) continue;
    const Problem many_keys = normal_problem({1, 1, 1, 3, size, 8, 8}, size);
    EXPECT_TRUE(within_bound(many_keys, attend(many_keys))) << "M " << size;
    const Problem many_queries = normal_problem({1, 3, 1, size, 9, 4, 4}, size);
    EXPECT_TRUE(within_bound(many_queries, attend(many_queries))) << "N " << size;
    if (size > 520) continue;
    Problem causal = normal_problem({1, 2, 1, size, size, 8, 8}, size);
    causal.plain.causal = true;
    EXPECT_TRUE(within_bound(causal, attend(causal))) << "causal, N = M = " << size;
  }
}

TEST(Accuracy, HoldsForEverySizeZeroOrOne) {
  for (int bits = 0; bits < 128; ++bits) {
    const auto size = [bits](int i, std::int64_t other) { return (bits >> i & 1) != 0 ? std::int64_t{1} : other; };
    // Head dims are at least 1.
    Sizes s{size(0, 0), size(1, 0), size(2, 0), size(3, 0), size(4, 0), size(5, 3), size(6, 2)};
    if (s.query_heads != 0 && s.kv_heads == 0) continue;  // refused
    const Problem problem = normal_problem(s, bits);
    EXPECT_TRUE(within_bound(problem, attend(problem))) << bits;
  }
}

TEST(Accuracy, HoldsForEveryMixtureOfTypes) {
  const DType types[] = {DType::f32, DType::f16, DType::bf16};
  for (const DType q : types) {
    for (const DType kv : types) {
      for (const DType out : types) {
        Problem problem = normal_problem({2, 4, 2, 19, 70, 24, 40}, 3, q, kv);
        problem.out_dtype = out;
        EXPECT_TRUE(within_bound(problem, attend(problem))) << name_of(q) << name_of(kv) << name_of(out);
      }
    }
  }
}

TEST(Accuracy, HoldsForScoresOfAHundredThousand) {
  for (const double spread : {30.0, 120.0, 500.0}) {  // times itself, times √D: 500 makes scores of 2,000,000
    for (const bool causal : {false, true}) {
      Problem problem = normal_problem({1, 2, 2, 40, 40, 64, 16}, 11, DType::f32, DType::f32, spread);
      problem.plain.causal = causal;
      EXPECT_TRUE(within_bound(problem, attend(problem))) << spread;
    }
  }
}

TEST(Accuracy, HoldsWhereAllScoresAreLargeAndAlike) {
  for (const double offset : {-1e5, 1e5}) {
    Problem problem = normal_problem({1, 1, 1, 5, 300, 4, 8}, 12);
    problem.q.fill([] { return 1.0; });
    for (std::int64_t j = 0; j < 300; ++j) problem.k.set(j * 4, offset + static_cast<double>(j % 7));
    problem.plain.scale = 1.0;
    EXPECT_TRUE(within_bound(problem, attend(problem))) << offset;
  }
}

TEST(Accuracy, HoldsForAlibiWithAnyNumberOfHeads) {
  for (const std::int64_t heads : {1, 2, 3, 5, 6, 8, 12, 20}) {
    Problem problem = normal_problem({1, heads, 1, 9, 33, 8, 8}, heads);
    const std::vector<float> slopes = alibi_slopes(static_cast<int>(heads));
    problem.alibi = Tensor(DType::f32, {heads});
    for (std::int64_t h = 0; h < heads; ++h) problem.alibi->set(h, slopes[h]);
    for (const Alignment alignment : {Alignment::top_left, Alignment::bottom_right}) {
      problem.plain.alignment = alignment;
      EXPECT_TRUE(within_bound(problem, attend(problem))) << heads;
    }
  }
}

// The numbers of the paper's own code for 1, 2, 4, 6 and 12 heads.
TEST(Accuracy, AlibiSlopesAreThePapers) {
  EXPECT_EQ(alibi_slopes(0), std::vector<float>());
  EXPECT_EQ(alibi_slopes(1), std::vector<float>({0x1p-8F}));
  EXPECT_EQ(alibi_slopes(2), std::vector<float>({0x1p-4F, 0x1p-8F}));
  EXPECT_EQ(alibi_slopes(4), std::vector<float>({0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F}));
  EXPECT_EQ(alibi_slopes(6), std::vector<float>({0x1p-2F, 0x1p-4F, 0x1p-6F, 0x1p-8F, 0x1p-1F, 0x1p-3F}));
  const float half_power = 0.70710678F;
  EXPECT_EQ(alibi_slopes(12),
            std::vector<float>({0x1p-1F, 0x1p-2F, 0x1p-3F, 0x1p-4F, 0x1p-5F, 0x1p-6F, 0x1p-7F, 0x1p-8F, half_power,
                                half_power / 2, half_power / 4, half_power / 8}));
}

struct Error {
  double largest = 0, relative = 0;  // relative: of the root of the mean of squares
};

Error error_of(const Problem& problem) {
  const Answer answer = attend(problem);
  const reference::Result expected = judge(problem);
  Error error;
  double squares = 0, expected_squares = 0;
  for (std::int64_t i = 0; i < answer.out.size(); ++i) {
    const double off = answer.out.get(i) - expected.out[i];
    error.largest = std::max(error.largest, std::abs(off));
    squares += off * off;
    expected_squares += expected.out[i] * expected.out[i];
  }
  error.relative = std::sqrt(squares / expected_squares);
  return error;
}

// The figures of docs/numerics.md: inputs of 512 tokens, q, k and v in bf16 numbers so that all lines see the same.
TEST(Accuracy, Figures) {
  struct Line {
    const char* name;
    bool causal;
    double spread;
    bool bf16_products;
  };
  for (const Line& line : {Line{"f32", false, 1, false},
                           {"f32, causal", true, 1, false},
                           {"f32, q and k x 30", false, 30, false},
                           {"bf16 products", false, 1, true},
                           {"bf16 products, causal", true, 1, true}}) {
    if (line.bf16_products && !bf16_products_available()) continue;
    Problem problem = normal_problem({1, 2, 2, 512, 512, 64, 64}, 1, DType::bf16, DType::bf16, line.spread);
    problem.out_dtype = DType::f32;
    problem.plain.causal = line.causal;
    problem.plain.bf16_products = line.bf16_products;
    const Error error = error_of(problem);
    std::printf("%-24s largest %.1e, relative %.1e\n", line.name, error.largest, error.relative);
    if (line.bf16_products) {
      EXPECT_LE(error.relative, 0x1p-8);
    } else {
      EXPECT_TRUE(within_bound(problem, attend(problem))) << line.name;
    }
  }
}

// A comparison that NaN or a wrong zero could pass would make all of the above worthless.
TEST(Accuracy, IsNotMetByWrongAnswers) {
  const Problem problem = normal_problem({1, 1, 1, 4, 20, 8, 8}, 1);
  const Answer right = attend(problem);
  ASSERT_TRUE(within_bound(problem, right));
  for (const double wrong : {0.0, right.out.get(5) * (1 + 1e-4), std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    Answer answer = right;
    answer.out.set(5, wrong);
    EXPECT_FALSE(within_bound(problem, answer)) << wrong;
    answer = right;
    answer.lse.set(2, wrong);
    EXPECT_FALSE(within_bound(problem, answer)) << wrong;
  }
}

}  // namespace
}  // namespace attn::tests

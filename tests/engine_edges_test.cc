// The edges of the contract: rows that see nothing, sizes of 0, one key, one pattern for zero and for NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine_judge.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expect_empty_row(const Answer& answer, std::int64_t row, double lse = -kInfinity) {
  const std::int64_t columns = answer.out.shape()[3];
  for (std::int64_t c = 0; c < columns; ++c) EXPECT_EQ(answer.out.bits(row * columns + c), 0U) << "row " << row;
  EXPECT_EQ(answer.lse.get(row), lse) << "row " << row;
}

// Every target, the specification included.
void on_every_target(const std::function<void()>& test) {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    SCOPED_TRACE(name_of(isa));
    test();
  }
}

TEST(Edges, RowsThatSeeNothingAreZeroWithEveryWayToHide) {
  on_every_target([] {
    Problem masked = normal_problem({1, 1, 1, 8, 8, 4, 4}, 1);
    masked.mask = Tensor(DType::boolean, {1, 1, 8, 8});
    masked.mask->fill([] { return 0.0; });
    Problem biased = normal_problem({1, 1, 1, 8, 8, 4, 4}, 1);
    biased.bias = Tensor(DType::f32, {1, 1, 1, 1});
    biased.bias->set(0, -kInfinity);
    Problem causal = normal_problem({1, 1, 1, 8, 8, 4, 4}, 1);
    causal.plain.causal = true;
    causal.plain.alignment = Alignment::offset;
    causal.plain.position_offset = -8;
    Problem far = normal_problem({1, 1, 1, 8, 8, 4, 4}, 1);
    far.plain.alignment = Alignment::offset;
    far.plain.position_offset = 100;
    far.plain.window_left = 10;
    Problem no_keys = normal_problem({1, 1, 1, 8, 0, 4, 4}, 1);
    Problem no_length = normal_problem({1, 1, 1, 8, 8, 4, 4}, 1);
    no_length.key_lengths = {0};
    Problem no_queries = normal_problem({1, 1, 1, 8, 8, 4, 4}, 1);
    no_queries.query_lengths = {0};
    for (const Problem& p : {masked, biased, causal, far, no_keys, no_length, no_queries}) {
      const Answer answer = attend(p);
      for (std::int64_t row = 0; row < 8; ++row) expect_empty_row(answer, row);
    }
  });
}

TEST(Edges, WithSinksTheLseOfRowsThatSeeNothingIsTheSink) {
  on_every_target([] {
    Problem p = normal_problem({1, 2, 1, 3, 0, 4, 4}, 1);
    p.sinks = Tensor(DType::f32, {2});
    p.sinks->set(0, 1.25);
    p.sinks->set(1, -40);
    const Answer answer = attend(p);
    for (std::int64_t row = 0; row < 6; ++row) expect_empty_row(answer, row, p.sinks->get(row / 3));
  });
}

TEST(Edges, SinksOfInfinityAndNan) {
  on_every_target([] {
    Problem p = normal_problem({1, 3, 1, 4, 6, 4, 4}, 1);
    const Answer without = attend(p);
    p.sinks = Tensor(DType::f32, {3});
    p.sinks->set(0, -kInfinity);  // weighs nothing
    p.sinks->set(1, kInfinity);   // e^(∞ − ∞)
    p.sinks->set(2, kNan);
    const Answer answer = attend(p);
    EXPECT_TRUE(same_bits(answer.out.slice(1, 0, 1), without.out.slice(1, 0, 1)));
    EXPECT_TRUE(same_bits(answer.lse.slice(1, 0, 1), without.lse.slice(1, 0, 1)));
    for (std::int64_t i = 4 * 4; i < answer.out.size(); ++i) {
      EXPECT_EQ(answer.out.bits(i), quiet_nan_bits(DType::f32)) << i;
    }
    for (std::int64_t i = 4; i < answer.lse.size(); ++i) {
      EXPECT_EQ(answer.lse.bits(i), quiet_nan_bits(DType::f32)) << i;
    }
  });
}

TEST(Edges, SizesOfZeroAreNoErrorAndWriteNothing) {
  for (const Sizes& s : {Sizes{0, 2, 1, 3, 4, 5, 6}, Sizes{2, 0, 0, 3, 4, 5, 6}, Sizes{2, 0, 1, 3, 4, 5, 6},
                         Sizes{2, 2, 1, 0, 4, 5, 6}, Sizes{0, 0, 0, 0, 0, 1, 1}}) {
    const Answer answer = attend(normal_problem(s, 1));
    EXPECT_EQ(answer.out.size(), 0);
  }
}

// Whatever the score, as long as it is a number above −∞.
TEST(Edges, ARowThatSeesOneKeyReturnsItsValueExactly) {
  on_every_target([] {
    for (const DType kv : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      const DType q = kv == DType::f64 ? kv : DType::f32;
      for (const double spread : {1.0, 1000.0}) {
        Problem p = normal_problem({1, 2, 1, 40, 40, 24, 19}, 7, q, kv, spread);
        p.plain.alignment = Alignment::top_left;
        p.plain.window_left = 0;
        p.plain.window_right = 0;
        p.out_dtype = q;
        for (const double softcap : {0.0, 20.0}) {
          if (softcap != 0) p.plain.softcap = softcap;
          const Answer answer = attend(p);
          for (std::int64_t i = 0; i < answer.out.size(); ++i) {
            ASSERT_EQ(answer.out.get(i), p.v.get(i % p.v.size())) << name_of(kv) << " " << i;
          }
        }
      }
    }
  });
}

TEST(Edges, ZerosAreStoredAsPlusZero) {
  on_every_target([] {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      const DType input = dtype == DType::f64 ? dtype : DType::f32;
      Problem p = normal_problem({1, 1, 1, 3, 5, 4, 4}, 1, input, input);
      p.out_dtype = dtype;
      p.v.fill([] { return -0.0; });
      const Answer zeros = attend(p);
      for (std::int64_t i = 0; i < zeros.out.size(); ++i) EXPECT_EQ(zeros.out.bits(i), 0U) << name_of(dtype);
    }
    // Too small for 16 bits, and negative.
    for (const DType dtype : {DType::f16, DType::bf16}) {
      Problem p = normal_problem({1, 1, 1, 3, 5, 4, 4}, 1);
      p.out_dtype = dtype;
      p.v.fill([] { return -1e-44; });
      const Answer tiny = attend(p);
      for (std::int64_t i = 0; i < tiny.out.size(); ++i) EXPECT_EQ(tiny.out.bits(i), 0U) << name_of(dtype);
    }
    // One key with score 0 and weight 1: log 1 is 0, and stored as +0 whatever the sign of the score.
    Problem p = normal_problem({1, 1, 1, 2, 1, 1, 1}, 1);
    p.q.set(0, -1.0);
    p.q.set(1, 1.0);
    p.k.set(0, 0.0);
    const Answer answer = attend(p);
    EXPECT_EQ(answer.lse.bits(0), 0U);
    EXPECT_EQ(answer.lse.bits(1), 0U);
  });
}

TEST(Edges, NanIsStoredAsTheOneQuietNan) {
  on_every_target([] {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
      const DType input = dtype == DType::f64 ? dtype : DType::f32;
      for (const bool signalling : {false, true}) {
        for (const int which : {0, 1, 2}) {
          Problem p = normal_problem({1, 1, 1, 2, 5, 4, 4}, 1, input, input);
          p.out_dtype = dtype;
          Tensor& target = which == 0 ? p.q : which == 1 ? p.k : p.v;
          const std::uint64_t sign = dtype == DType::f64 ? 0x8000000000000000 : 0x80000000;
          target.set_bits(0, signalling ? signalling_nan_bits(input) : quiet_nan_bits(input) | sign | 5);
          const Answer answer = attend(p);
          EXPECT_EQ(answer.out.bits(0), quiet_nan_bits(dtype)) << name_of(dtype) << " " << which;
          if (which < 2) {
            EXPECT_EQ(answer.lse.bits(0), quiet_nan_bits(p.compute()));
          }
        }
      }
    }
  });
}

// Scores of ±∞ follow IEEE arithmetic, as in the judge: −∞ weighs nothing, ∞ − ∞ is NaN.
TEST(Edges, InfiniteScoresFollowTheReference) {
  on_every_target([] {
    for (const double k : {kInfinity, -kInfinity}) {
      for (const double q : {2.0, -2.0, 0.0}) {
        for (const bool all : {false, true}) {
          Problem p = normal_problem({1, 1, 1, 2, 5, 2, 3}, 1);
          p.q.set(0, q);
          for (std::int64_t j = 0; j < (all ? 5 : 1); ++j) p.k.set(j * 2, k);
          EXPECT_TRUE(within_bound(p, attend(p))) << k << ' ' << q << ' ' << all;
        }
      }
    }
    Problem p = normal_problem({1, 1, 1, 2, 5, 2, 3}, 1);
    p.bias = Tensor(DType::f32, {1, 1, 2, 5});
    p.bias->fill([] { return 0.0; });
    p.bias->set(3, kInfinity);
    EXPECT_TRUE(within_bound(p, attend(p)));
    p.bias->set(3, kNan);
    EXPECT_TRUE(within_bound(p, attend(p)));
  });
}

// Large finite numbers neither overflow nor lose their meaning.
TEST(Edges, HugeValuesAndBiasesFollowTheReference) {
  on_every_target([] {
    Problem p = normal_problem({1, 1, 1, 3, 300, 2, 3}, 1);
    for (std::int64_t i = 0; i < p.v.size(); i += 7) p.v.set(i, 1e35);
    p.bias = Tensor(DType::f32, {1, 1, 3, 300});
    std::int64_t n = 0;
    p.bias->fill([&n] { return ++n % 3 == 0 ? -1e30 : 1e4; });
    EXPECT_TRUE(within_bound(p, attend(p)));
  });
}

// Positions near the ends of 64 bits: sums that overflow would show a key or hide one.
TEST(Edges, HugeOffsetsAndWindows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kFar = std::int64_t{1} << 62;
  const auto expect_judged = [](const Problem& p) {
    EXPECT_TRUE(within_bound(p, attend(p))) << p.plain.position_offset << ' ' << p.plain.window_left.value_or(-1)
                                            << ' ' << p.plain.window_right.value_or(-1);
  };
  on_every_target([&] {
    for (const std::int64_t offset : {kFar, -kFar, kMost - 10, std::int64_t{0}}) {
      for (const std::int64_t window : {kMost, kMost - 1, kFar, std::int64_t{3}}) {
        for (const bool causal : {false, true}) {
          Problem p = normal_problem({1, 1, 1, 5, 9, 4, 4}, 1);
          p.plain.causal = causal;
          p.plain.alignment = Alignment::offset;
          p.plain.position_offset = offset;
          p.plain.window_left = window;
          expect_judged(p);
          p.plain.window_right = window;
          p.plain.sink_tokens = kMost;
          expect_judged(p);
          p.plain.window_left.reset();
          p.plain.sink_tokens = 2;
          expect_judged(p);
        }
      }
    }
    Problem p = normal_problem({1, 1, 1, 5, 9, 4, 4}, 1);
    p.plain.causal = true;
    p.plain.alignment = Alignment::offset;
    p.plain.key_offset = kFar / 2 - 100;
    p.plain.position_offset = p.plain.key_offset + 3;
    expect_judged(p);
  });
}

TEST(Edges, RowsOfNoPackedSequenceSeeNothing) {
  on_every_target([] {
    Problem p = normal_problem({1, 2, 1, 7, 9, 4, 4}, 1);
    p.query_starts = {0, 2, 5};
    p.key_starts = {0, 4, 8};
    const Answer answer = attend(p);
    for (const std::int64_t row : {5, 6, 12, 13}) expect_empty_row(answer, row);
    EXPECT_TRUE(within_bound(p, answer));
  });
}

}  // namespace
}  // namespace attn::tests

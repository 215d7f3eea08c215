#include "engine_problem.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace attn::tests {

AttentionOptions Problem::options() const {
  AttentionOptions all = plain;
  if (mask) all.mask = mask->view();
  if (bias) all.bias = bias->view();
  if (alibi) all.alibi = alibi->view();
  if (sinks) all.sinks = sinks->view();
  all.key_lengths = key_lengths;
  all.query_lengths = query_lengths;
  all.query_starts = query_starts;
  all.key_starts = key_starts;
  all.position_offsets = position_offsets;
  return all;
}

Tensor normal_tensor(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed, double spread) {
  Tensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  tensor.fill([&] { return spread * normal(random); });
  return tensor;
}

Problem normal_problem(const Sizes& s, std::uint64_t seed, DType q, DType kv, double spread) {
  Problem problem;
  problem.sizes = s;
  problem.q = normal_tensor(q, {s.batch, s.query_heads, s.queries, s.key_dim}, 3 * seed, spread);
  problem.k = normal_tensor(kv, {s.batch, s.kv_heads, s.keys, s.key_dim}, 3 * seed + 1, spread);
  problem.v = normal_tensor(kv, {s.batch, s.kv_heads, s.keys, s.value_dim}, 3 * seed + 2);
  problem.out_dtype = problem.compute();
  return problem;
}

Answer attend(const Problem& p) {
  const auto& rows = p.q.shape();
  Answer answer{Tensor(p.out_dtype, {rows[0], rows[1], rows[2], p.v.shape()[3]}, p.out_layout),
                Tensor(p.compute(), {rows[0], rows[1], rows[2]}, p.out_layout)};
  const Status status =
      forward(p.q.view(), p.k.view(), p.v.view(), answer.out.output(), p.options(), answer.lse.output());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(answer.out.gaps_untouched() && answer.lse.gaps_untouched()) << "wrote beside the outputs";
  return answer;
}

testing::AssertionResult same_bits(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape()) return testing::AssertionFailure() << "shapes differ";
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    if (actual.bits(i) == expected.bits(i)) continue;
    return testing::AssertionFailure() << "element " << i << " of " << actual.size() << ": " << std::hexfloat
                                       << actual.get(i) << ", but " << expected.get(i) << " (bits " << std::hex
                                       << actual.bits(i) << " and " << expected.bits(i) << ")";
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult same_bits(const Answer& actual, const Answer& expected) {
  if (const auto result = same_bits(actual.out, expected.out); !result) {
    return testing::AssertionFailure() << "out: " << result.message();
  }
  if (const auto result = same_bits(actual.lse, expected.lse); !result) {
    return testing::AssertionFailure() << "lse: " << result.message();
  }
  return testing::AssertionSuccess();
}

ForcedIsa::ForcedIsa(Isa isa) : before_(current_isa()) {
  const Status status = force_isa(isa);
  EXPECT_TRUE(status.ok()) << status.message();
}
ForcedIsa::~ForcedIsa() {
  const Status status = force_isa(before_);
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<Isa> isas_with_equal_bits() {
  std::vector<Isa> isas = available_isas();
  std::erase(isas, Isa::sse4);
  return isas;
}

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kPercent = 10;
#else
constexpr int kPercent = 100;
#endif

}  // namespace

int effort(int full) {
  const char* wish = std::getenv("ATTN_TEST_EFFORT");
  const int percent = wish ? std::atoi(wish) : kPercent;
  return std::max(1, static_cast<int>(static_cast<std::int64_t>(full) * percent / 100));
}

}  // namespace attn::tests

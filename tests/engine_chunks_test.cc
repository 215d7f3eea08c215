// Rows keep their bits however a call is cut: by sequences, heads and rows, chunk by chunk, key range by key range.
#include <gtest/gtest.h>

#include <algorithm>

#include "attn/numerics.h"
#include "engine_parts.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

RecipeLimits unpacked() {
  RecipeLimits limits;
  limits.packed = false;
  return limits;
}

TEST(Chunks, AnyRowsAloneHaveTheBitsOfTheWhole) {
  RecipeLimits limits = unpacked();
  limits.nonfinite = true;
  check_problems("rows alone", 250, limits, [](const Recipe& recipe, const Problem& problem) {
    return rows_alone_agree(problem, recipe.seed);
  });
}

// A prompt in chunks: each sees the keys up to its own end, as with a cache that grows.
void expect_chunks_equal(const Problem& problem, std::int64_t chunk) {
  const Answer whole = attend(problem);
  const std::int64_t n = problem.sizes.queries, past = problem.sizes.keys - n;
  for (std::int64_t first = 0; first < n; first += chunk) {
    const RowRange rows{0, 0, first, std::min(chunk, n - first)};
    Problem part = rows_of(keys_of(problem, 0, past + first + rows.count), rows);
    part.sinks = problem.sinks;
    part.plain.alignment = Alignment::bottom_right;
    part.position_offsets.clear();
    ASSERT_TRUE(same_bits(attend(part), rows_of(problem, whole, rows))) << "chunk " << chunk << ", row " << first;
  }
}

Problem prompt(std::int64_t queries, std::int64_t keys, DType q = DType::f32, DType kv = DType::f32) {
  Problem problem = normal_problem({1, 3, 1, queries, keys, 24, 16}, 1, q, kv);
  problem.plain.causal = true;
  problem.plain.alignment = Alignment::bottom_right;
  return problem;
}

TEST(Chunks, OfEverySizeGiveThePromptsBits) {
  for (std::int64_t chunk = 1; chunk <= 40; ++chunk) expect_chunks_equal(prompt(40, 40), chunk);
  for (std::int64_t chunk = 1; chunk <= 130; chunk += effort(100) < 100 ? 9 : 1) {
    expect_chunks_equal(prompt(130, 300), chunk);
  }
}

TEST(Chunks, OfEveryTypeGiveThePromptsBits) {
  for (const std::int64_t chunk : {1, 7, 16, 33, 99}) {
    expect_chunks_equal(prompt(100, 280, DType::f32, DType::bf16), chunk);
    expect_chunks_equal(prompt(100, 280, DType::f16, DType::f16), chunk);
    expect_chunks_equal(prompt(100, 280, DType::f64, DType::f64), chunk);
  }
}

TEST(Chunks, WithWindowsSlopesSinksAndCapsGiveThePromptsBits) {
  Problem problem = prompt(120, 350);
  problem.plain.window_left = 70;
  problem.plain.sink_tokens = 4;
  problem.plain.softcap = 5;
  problem.sinks = normal_tensor(DType::f32, {3}, 8);
  problem.alibi = normal_tensor(DType::f32, {3}, 9);
  for (const std::int64_t chunk : {1, 2, 5, 16, 64, 97, 119}) expect_chunks_equal(problem, chunk);
}

TEST(Chunks, OfLongPromptsGiveThePromptsBits) {
  const std::int64_t n = effort(100) < 100 ? 2100 : 4200;
  for (const std::int64_t chunk : {std::int64_t{150}, std::int64_t{511}, std::int64_t{2048}, n - 1}) {
    expect_chunks_equal(prompt(n, n), chunk);
  }
}

// The last rows of a long prompt, one at a time.
TEST(Chunks, DecodingRowByRowGivesThePromptsBits) {
  for (const DType kv : {DType::f32, DType::bf16, DType::f16}) {
    expect_chunks_equal(prompt(70, 70, DType::f32, kv), 1);
    expect_chunks_equal(prompt(20, 2055, DType::f32, kv), 1);
    expect_chunks_equal(prompt(12, 4100, DType::f32, kv), 1);
  }
}

// Packed sequences against the same ones padded.
Problem packed(const Problem& padded) {
  Problem p = padded;
  const Sizes& s = padded.sizes;
  p.query_starts = p.key_starts = {0};
  std::int64_t longest_queries = 0, longest_keys = 0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t queries = padded.query_lengths.empty() ? s.queries : padded.query_lengths[b];
    p.query_starts.push_back(p.query_starts.back() + queries);
    p.key_starts.push_back(p.key_starts.back() + padded.key_lengths[b]);
    longest_queries = std::max(longest_queries, queries);
    longest_keys = std::max(longest_keys, padded.key_lengths[b]);
  }
  p.key_lengths.clear();
  p.query_lengths.clear();
  const auto pack = [&s](const Tensor& from, const std::vector<std::int64_t>& starts) {
    Tensor to(from.dtype(), {1, from.shape()[1], starts.back(), from.shape()[3]});
    for (std::int64_t b = 0; b < s.batch; ++b) {
      for (std::int64_t h = 0; h < from.shape()[1]; ++h) {
        for (std::int64_t row = 0; row < starts[b + 1] - starts[b]; ++row) {
          for (std::int64_t c = 0; c < from.shape()[3]; ++c) {
            to.set_bits(to.index({0, h, starts[b] + row, c}), from.bits(from.index({b, h, row, c})));
          }
        }
      }
    }
    return to;
  };
  p.q = pack(padded.q, p.query_starts);
  p.k = pack(padded.k, p.key_starts);
  p.v = pack(padded.v, p.key_starts);
  for (std::optional<Tensor>* tensor : {&p.mask, &p.bias}) {
    if (*tensor && (*tensor)->shape()[2] != 1) *tensor = (*tensor)->slice(2, 0, longest_queries);
    if (*tensor && (*tensor)->shape()[3] != 1) *tensor = (*tensor)->slice(3, 0, longest_keys);
  }
  return p;
}

TEST(Chunks, PackedSequencesHaveTheBitsOfPaddedOnes) {
  check_problems("packed and padded", 400, unpacked(), [](const Recipe& recipe, const Problem& padded) {
    if (recipe.ragged != Ragged::padded || padded.plain.key_offset != 0) return testing::AssertionSuccess();
    const Problem dense = packed(padded);
    const Answer expected = attend(padded), actual = attend(dense);
    for (std::int64_t b = 0; b < padded.sizes.batch; ++b) {
      const std::int64_t first = dense.query_starts[b], count = dense.query_starts[b + 1] - first;
      const Answer mine{actual.out.slice(2, first, count), actual.lse.slice(2, first, count)};
      const Answer theirs{expected.out.slice(0, b, 1).slice(2, 0, count),
                          expected.lse.slice(0, b, 1).slice(2, 0, count)};
      if (const auto same = same_bits(mine, theirs); !same) {
        return testing::AssertionFailure() << "sequence " << b << ": " << same.message();
      }
    }
    return testing::AssertionSuccess();
  });
}

}  // namespace
}  // namespace attn::tests

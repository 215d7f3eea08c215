// What a row may not see cannot change it, whatever it holds; what it does see shows there, and only there.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "engine_judge.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Poison { quiet_nan, signalling_nan, infinity, minus_infinity };
constexpr Poison kPoisons[] = {Poison::quiet_nan, Poison::signalling_nan, Poison::infinity, Poison::minus_infinity};

void put(Tensor* tensor, std::int64_t index, Poison poison) {
  switch (poison) {
    case Poison::quiet_nan: return tensor->set_bits(index, quiet_nan_bits(tensor->dtype()));
    case Poison::signalling_nan: return tensor->set_bits(index, signalling_nan_bits(tensor->dtype()));
    case Poison::infinity: return tensor->set(index, kInfinity);
    case Poison::minus_infinity: return tensor->set(index, -kInfinity);
  }
}

RecipeLimits limits() {
  RecipeLimits limits;
  limits.packed = false;
  limits.most_work = 1'000'000;
  return limits;
}

// A table of visible keys with its indices.
struct Visible {
  const Sizes& s;
  std::vector<bool> table;

  bool at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return table[((b * s.query_heads + h) * s.queries + i) * s.keys + j];
  }
};

// Some keys of every key/value head of every sequence.
std::vector<bool> choose_keys(const Sizes& s, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<bool> chosen(s.batch * s.kv_heads * s.keys);
  const std::uint64_t one_in = 2 + random() % 8;
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = random() % one_in == 0;
  return chosen;
}

// Puts poison into whole key rows, single elements of values, or both.
void spoil(Problem* p, const std::vector<bool>& keys, Poison poison, bool in_keys, bool in_values) {
  const Sizes& s = p->sizes;
  for (std::size_t row = 0; row < keys.size(); ++row) {
    if (!keys[row]) continue;
    const auto at = static_cast<std::int64_t>(row);
    if (in_keys) put(&p->k, at * s.key_dim + at % s.key_dim, poison);
    if (in_values) put(&p->v, at * s.value_dim + at % s.value_dim, poison);
  }
}

testing::AssertionResult same_row(const Answer& a, const Answer& b, std::int64_t row, std::int64_t columns) {
  if (a.lse.bits(row) != b.lse.bits(row)) return testing::AssertionFailure() << "lse of row " << row << " changed";
  for (std::int64_t c = row * columns; c < (row + 1) * columns; ++c) {
    if (a.out.bits(c) != b.out.bits(c)) return testing::AssertionFailure() << "out of row " << row << " changed";
  }
  return testing::AssertionSuccess();
}

// Whether the rows that see none of the keys have the bits that they had.
testing::AssertionResult blind_rows_unchanged(const Problem& p, const Visible& visible,
                                              const std::vector<bool>& keys, const Answer& before,
                                              const Answer& after) {
  const Sizes& s = p.sizes;
  for (std::int64_t row = 0; row < s.batch * s.query_heads * s.queries; ++row) {
    const std::int64_t b = row / s.queries / s.query_heads, h = row / s.queries % s.query_heads,
                       i = row % s.queries;
    const std::int64_t head = b * s.kv_heads + h / (s.query_heads / s.kv_heads);
    bool sees = false;
    for (std::int64_t j = 0; j < s.keys; ++j) sees = sees || (keys[head * s.keys + j] && visible.at(b, h, i, j));
    if (sees) continue;
    if (const auto same = same_row(after, before, row, s.value_dim); !same) return same;
  }
  return testing::AssertionSuccess();
}

TEST(Poison, InKeysAndValuesStaysWithThoseWhoSeeIt) {
  check_problems("poisoned keys", 250, limits(), [](const Recipe& recipe, const Problem& problem) {
    const Visible visible{problem.sizes, visible_keys(problem)};
    const std::vector<bool> keys = choose_keys(problem.sizes, recipe.seed);
    const Answer before = attend(problem);
    for (const Poison poison : kPoisons) {
      for (const int where : {1, 2, 3}) {
        Problem spoilt = problem;
        spoil(&spoilt, keys, poison, (where & 1) != 0, (where & 2) != 0);
        const auto unchanged = blind_rows_unchanged(problem, visible, keys, before, attend(spoilt));
        if (!unchanged) return testing::AssertionFailure() << "where " << where << ": " << unchanged.message();
      }
    }
    return testing::AssertionSuccess();
  });
}

// NaN in a key makes the rows that see it NaN; NaN in a value makes its column NaN there.
TEST(Poison, OfNanShowsWhereItIsSeen) {
  check_problems("seen NaN", 150, limits(), [](const Recipe& recipe, const Problem& problem) {
    Problem spoilt = problem;
    spoil(&spoilt, choose_keys(problem.sizes, recipe.seed), Poison::quiet_nan, recipe.seed % 2 == 0,
          recipe.seed % 3 != 0);
    return within_bound(spoilt, attend(spoilt));
  });
}

// Every element of the bias (and of keys and values, where no row at all sees them) that selection hides.
TEST(Poison, InWhateverNobodySeesChangesNoBit) {
  check_problems("poison that nobody sees", 250, limits(), [](const Recipe&, const Problem& problem) {
    const Sizes& s = problem.sizes;
    const Visible visible{s, visible_keys(problem)};
    // The mask hides for the bias, too: what it holds at hidden pairs must not matter.
    Problem plain = problem;
    plain.bias = Tensor(problem.compute(), {s.batch, s.query_heads, s.queries, s.keys});
    plain.bias->fill([] { return 0.5; });
    plain.mask = Tensor(DType::boolean, plain.bias->shape());
    for (std::int64_t i = 0; i < plain.mask->size(); ++i) plain.mask->set(i, visible.table[i] ? 1 : 0);
    std::vector<bool> unseen(s.batch * s.kv_heads * s.keys, true);
    for (std::int64_t i = 0; i < plain.mask->size(); ++i) {
      const std::int64_t pair = i / s.keys / s.queries, b = pair / s.query_heads;
      const std::int64_t head = b * s.kv_heads + pair % s.query_heads / (s.query_heads / s.kv_heads);
      if (visible.table[i]) unseen[head * s.keys + i % s.keys] = false;
    }
    const Answer before = attend(plain);
    for (const Poison poison : kPoisons) {
      Problem spoilt = plain;
      for (std::int64_t i = 0; i < spoilt.bias->size(); ++i) {
        if (!visible.table[i]) put(&*spoilt.bias, i, poison);
      }
      spoil(&spoilt, unseen, poison, true, true);
      // Query rows behind a query length are nobody's.
      for (std::int64_t b = 0; b < s.batch && !problem.query_lengths.empty(); ++b) {
        for (std::int64_t h = 0; h < s.query_heads; ++h) {
          for (std::int64_t i = problem.query_lengths[b]; i < s.queries; ++i) {
            put(&spoilt.q, spoilt.q.index({b, h, i, 0}), poison);
          }
        }
      }
      if (const auto same = same_bits(attend(spoilt), before); !same) {
        return testing::AssertionFailure() << "poison " << static_cast<int>(poison) << ": " << same.message();
      }
    }
    return testing::AssertionSuccess();
  });
}

// Padding inside causal, windowed and ragged calls, by hand: keys behind lengths hold NaN and the tiles are large.
TEST(Poison, BehindLengthsOfLongBatchesChangesNoBit) {
  for (const bool causal : {false, true}) {
    Problem p = normal_problem({2, 2, 1, 300, 700, 16, 16}, 3);
    p.key_lengths = {650, 259};
    p.query_lengths = {300, 100};
    p.plain.causal = causal;
    if (causal) p.plain.alignment = Alignment::bottom_right;
    const Answer before = attend(p);
    for (const Poison poison : kPoisons) {
      Problem spoilt = p;
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t j = p.key_lengths[b]; j < 700; ++j) {
          for (std::int64_t d = 0; d < 16; ++d) {
            put(&spoilt.k, spoilt.k.index({b, 0, j, d}), poison);
            put(&spoilt.v, spoilt.v.index({b, 0, j, d}), poison);
          }
        }
      }
      EXPECT_TRUE(same_bits(attend(spoilt), before));
    }
  }
}

}  // namespace
}  // namespace attn::tests

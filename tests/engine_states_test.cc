// Partial results: states cut at segment edges and folded in order are the whole, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "attn/numerics.h"
#include "engine_parts.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

testing::AssertionResult ok(const Status& status) {
  return status.ok() ? testing::AssertionSuccess() : testing::AssertionFailure() << status.message();
}

StateParts state_of(const Problem& problem) {
  StateParts parts(problem);
  const AttentionOptions options = problem.options();
  EXPECT_TRUE(ok(forward_state(problem.q.view(), problem.k.view(), problem.v.view(), parts.state(), options)));
  return parts;
}

Answer finish(StateParts* parts, const Problem& problem) {
  const Sizes& s = problem.sizes;
  Answer answer{Tensor(problem.out_dtype, {s.batch, s.query_heads, s.queries, s.value_dim}),
                Tensor(problem.compute(), {s.batch, s.query_heads, s.queries})};
  const std::optional<TensorView> sinks = problem.options().sinks;
  EXPECT_TRUE(ok(finish_state(parts->state(), answer.out.output(), answer.lse.output(), sinks)));
  return answer;
}

// Cut at every segment edge from absolute position `first_cut` on, folded left: a piece that is not the first may
// hold one segment only, since a fold of folds rounds in another order.
Answer in_pieces(const Problem& problem, std::int64_t first_cut) {
  std::optional<StateParts> total;
  const std::int64_t start = problem.plain.key_offset, end = start + problem.sizes.keys;
  for (std::int64_t from = start; from < end || !total;) {
    const std::int64_t to = std::min(end, std::max(first_cut, (from / kSegmentKeys + 1) * kSegmentKeys));
    StateParts next = state_of(keys_of(problem, from - start, to - from));
    if (total) {
      EXPECT_TRUE(ok(merge_states(total->state(), next.state())));
    } else {
      total = std::move(next);
    }
    from = to;
  }
  return finish(&*total, problem);
}

// Rows behind a query length have no sink, but a state does not know which those are.
bool knows_all_rows(const Problem& problem) { return !problem.sinks || problem.query_lengths.empty(); }

RecipeLimits limits(bool many_keys) {
  RecipeLimits limits;
  limits.packed = false;
  limits.many_keys = many_keys;
  limits.nonfinite = true;
  return limits;
}

TEST(States, CutAtSegmentEdgesAreTheWhole) {
  check_problems("long rows in pieces", 120, limits(true), [](const Recipe&, const Problem& problem) {
    if (!knows_all_rows(problem)) return testing::AssertionSuccess();
    const Answer whole = attend(problem);
    if (const auto same = same_bits(in_pieces(problem, 0), whole); !same) return same;
    return same_bits(in_pieces(problem, 2 * kSegmentKeys), whole);
  });
}

TEST(States, OfAllKeysFinishToTheWhole) {
  check_problems("one piece", 150, limits(false), [](const Recipe&, const Problem& problem) {
    if (!knows_all_rows(problem)) return testing::AssertionSuccess();
    return same_bits(in_pieces(problem, std::int64_t{1} << 40), attend(problem));
  });
}

TEST(States, MergedWithTheEmptyStateKeepTheirBits) {
  check_problems("neutral", 60, limits(false), [](const Recipe&, const Problem& problem) {
    StateParts state = state_of(keys_of(problem, 0, problem.sizes.keys));
    const StateParts before = state;
    StateParts empty = state_of(keys_of(problem, 0, 0));
    for (std::int64_t i = 0; i < empty.max.size(); ++i) {
      if (empty.max.get(i) != -std::numeric_limits<double>::infinity() || empty.sum.get(i) != 0) {
        return testing::AssertionFailure() << "the state of no keys is not (-inf, 0, 0)";
      }
    }
    const StateParts nothing = empty;
    EXPECT_TRUE(ok(merge_states(state.state(), empty.state())));
    for (const auto& [now, then] :
         {std::pair{&state.max, &before.max}, {&state.sum, &before.sum}, {&state.out, &before.out}}) {
      if (const auto same = same_bits(*now, *then); !same) return same;
    }
    state = before;
    EXPECT_TRUE(ok(merge_states(empty.state(), state.state())));
    for (const auto& [now, then] :
         {std::pair{&empty.max, &before.max}, {&empty.sum, &before.sum}, {&empty.out, &before.out}}) {
      if (const auto same = same_bits(*now, *then); !same) return same;
    }
    return testing::AssertionSuccess();
  });
}

// Positions enter by their place in a block and by p − j alone: far from 0 everything is as it was.
TEST(States, FarFromPositionZeroKeepTheirBits) {
  check_problems("shifted by whole segments", 200, limits(false), [](const Recipe&, const Problem& problem) {
    if (problem.plain.sink_tokens != 0) return testing::AssertionSuccess();  // these count from position 0
    const Answer expected = attend(problem);
    for (const std::int64_t shift : {kSegmentKeys, kSegmentKeys << 20, kSegmentKeys << 40}) {
      Problem moved = keys_of(problem, 0, problem.sizes.keys);
      moved.sinks = problem.sinks;
      moved.plain.key_offset += shift;
      for (std::int64_t& offset : moved.position_offsets) offset += shift;
      if (const auto same = same_bits(attend(moved), expected); !same) {
        return testing::AssertionFailure() << "moved by " << shift << ": " << same.message();
      }
    }
    return testing::AssertionSuccess();
  });
}

// A window over a long sequence against a call that gets no other keys.
TEST(States, OfWindowsNeedNoKeysOutsideThem) {
  Problem problem = normal_problem({1, 2, 1, 9, 5000, 16, 16}, 4);
  problem.plain.causal = true;
  problem.plain.alignment = Alignment::offset;
  problem.plain.window_left = 300;
  for (const std::int64_t position : {301, 2040, 2350, 4095, 4096, 4991}) {
    problem.plain.position_offset = position;
    const Answer whole = attend(problem);
    for (const std::int64_t before : {0, 1, 17}) {
      const std::int64_t first = std::max<std::int64_t>(0, position - 300 - before);
      EXPECT_TRUE(same_bits(attend(keys_of(problem, first, position + 9 - first)), whole)) << position;
    }
  }
}

}  // namespace
}  // namespace attn::tests

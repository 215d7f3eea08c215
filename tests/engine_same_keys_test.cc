// Whatever hides a key – causality, windows, lengths, a mask, a bias of −∞ – the same visible keys give the same
// bits.
#include <gtest/gtest.h>

#include <limits>

#include "engine_judge.h"
#include "engine_parts.h"
#include "engine_problem.h"
#include "engine_random.h"

namespace attn::tests {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

RecipeLimits limits() {
  RecipeLimits limits;
  limits.packed = false;
  limits.nonfinite = true;
  limits.most_work = 1'000'000;
  return limits;
}

// The bias of every pair, written out, −∞ and all; 0 without one.
Tensor full_bias(const Problem& p) {
  const Sizes& s = p.sizes;
  Tensor full(p.bias ? p.bias->dtype() : p.compute(), {s.batch, s.query_heads, s.queries, s.keys});
  for (std::int64_t i = 0; i < full.size(); ++i) {
    std::vector<std::int64_t> place{i / (s.keys * s.queries * s.query_heads),
                                    i / (s.keys * s.queries) % s.query_heads, i / s.keys % s.queries, i % s.keys};
    if (p.bias) {
      for (int d = 0; d < 4; ++d) {
        if (p.bias->shape()[d] == 1) place[d] = 0;
      }
      full.set_bits(i, p.bias->bits(p.bias->index(place)));
    } else {
      full.set(i, 0);
    }
  }
  return full;
}

// Nothing hides a key any more; queries stay where they are, and so does what lies behind their lengths.
Problem without_hiding(const Problem& problem) {
  Problem open = keys_of(problem, 0, problem.sizes.keys);
  open.sinks = problem.sinks;
  open.mask.reset();
  open.key_lengths.clear();
  open.plain.causal = false;
  open.plain.window_left.reset();
  open.plain.window_right.reset();
  open.plain.sink_tokens = 0;
  return open;
}

Tensor mask_of(const Problem& p, const std::vector<bool>& visible) {
  Tensor mask(DType::boolean, {p.sizes.batch, p.sizes.query_heads, p.sizes.queries, p.sizes.keys});
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.set(i, visible[i] ? 1 : 0);
  return mask;
}

TEST(SameKeys, AsAMaskGiveTheSameBits) {
  check_problems("as a mask", 200, limits(), [](const Recipe&, const Problem& problem) {
    Problem masked = without_hiding(problem);
    masked.mask = mask_of(problem, visible_keys(problem));
    // The bias's own −∞ are in the mask, too, and must not matter.
    if (masked.bias) {
      masked.bias = full_bias(problem);
      for (std::int64_t i = 0; i < masked.bias->size(); ++i) {
        if (masked.mask->get(i) == 0) masked.bias->set(i, 1.5);
      }
    }
    return same_bits(attend(masked), attend(problem));
  });
}

TEST(SameKeys, AsABiasGiveTheSameBits) {
  check_problems("as a bias", 200, limits(), [](const Recipe&, const Problem& problem) {
    const std::vector<bool> visible = visible_keys(problem);
    Problem biased = without_hiding(problem);
    biased.bias = full_bias(problem);
    for (std::int64_t i = 0; i < biased.bias->size(); ++i) {
      if (!visible[i]) biased.bias->set(i, kMinusInfinity);
    }
    return same_bits(attend(biased), attend(problem));
  });
}

TEST(SameKeys, HiddenTwiceGiveTheSameBits) {
  check_problems("hidden twice", 150, limits(), [](const Recipe&, const Problem& problem) {
    Problem twice = problem;
    twice.mask = mask_of(problem, visible_keys(problem));
    return same_bits(attend(twice), attend(problem));
  });
}

// Masks that hide nothing, biases of zero and windows wider than the sequence change no bit.
TEST(SameKeys, OptionsThatHideNothingChangeNoBit) {
  check_problems("nothing hidden", 150, limits(), [](const Recipe&, const Problem& problem) {
    Problem more = keys_of(problem, 0, problem.sizes.keys);
    more.sinks = problem.sinks;
    const Answer expected = attend(more);
    if (!more.mask) more.mask = mask_of(problem, std::vector<bool>(full_bias(problem).size(), true));
    if (!more.bias) more.bias = full_bias(problem);
    if (!more.plain.window_left) more.plain.window_left = std::numeric_limits<std::int64_t>::max();
    if (!more.plain.window_right) more.plain.window_right = std::numeric_limits<std::int64_t>::max() - 5;
    return same_bits(attend(more), expected);
  });
}

}  // namespace
}  // namespace attn::tests

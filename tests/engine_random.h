// Random problems over everything that a call may say: shapes, dtypes, layouts, options and odd numbers.
//
// RapidCheck draws a Recipe, prints its seed, and shrinks it where a property fails; RC_PARAMS="seed=…" repeats a
// run.
#pragma once

#include <rapidcheck.h>

#include <functional>
#include <iosfwd>
#include <string>

#include "engine_problem.h"

namespace attn::tests {

enum class Ragged { none, padded, packed };

struct Recipe {
  std::uint64_t seed = 0;
  Sizes sizes;  ///< of the longest sequence, where packed
  DType q = DType::f32, kv = DType::f32, out = DType::f32;
  Layout q_layout = Layout::row_major, kv_layout = Layout::row_major, out_layout = Layout::row_major;
  double spread = 1;
  int odd_numbers = 0;     ///< of q, k and v, one in so many is ±0, denormal or huge; 0: none
  bool nonfinite = false;  ///< and one in 200 of them NaN or ±∞
  std::optional<double> scale, softcap;
  bool causal = false;
  Alignment alignment = Alignment::equal_lengths;
  std::int64_t offset = 0;
  std::optional<std::int64_t> window_left, window_right;
  std::int64_t sink_tokens = 0;
  int mask = 0,
      bias = 0;  ///< 0: none; otherwise bit d says that dimension d has its full size (1 … 15, 16: scalar)
  int hidden_percent = 0;  ///< of mask and bias elements
  bool alibi = false, sinks = false;
  Ragged ragged = Ragged::none;
  std::int64_t key_offset = 0;
};

std::ostream& operator<<(std::ostream& stream, const Recipe& recipe);

/// What a recipe may hold.
struct RecipeLimits {
  bool double_precision = true;
  bool packed = true;
  bool nonfinite = false;
  bool many_keys = false;              ///< 2,000 to 6,200 keys: several segments
  std::int64_t most_work = 3'000'000;  ///< multiply-adds; sizes are cut to it
};

rc::Gen<Recipe> recipes(const RecipeLimits& limits = {});

Problem make(const Recipe& recipe);

/// Checks `property` on about `count` problems (see effort()) as one assertion of the current test. The property
/// returns what same_bits() and within_bound() return.
void check_problems(const std::string& what, int count, const RecipeLimits& limits,
                    const std::function<testing::AssertionResult(const Recipe&, const Problem&)>& property);

}  // namespace attn::tests

// The recipe for one query: which keys it sees, their scores, their weights.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "reference/inputs.h"

namespace attn::reference {

/// Whether query i may look at key j (both count from the first of their sequence): by causality, window, mask
/// and a bias of −∞. What a query may not look at, nothing below ever reads.
bool is_visible(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i, std::int64_t j);

/// |p − j|, exactly: how far key j is from the position of query i.
double distance(const Inputs& inputs, const Sequence& sequence, std::int64_t i, std::int64_t j);

/// q·k × scale → softcap → + bias → + ALiBi.
double score(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i, std::int64_t j);

/// One query row after the softmax. Where it sees no key, or all that it sees scores −∞, `weights` are 0.
struct Row {
  std::vector<std::int64_t> keys;  ///< the visible ones, ascending, counted within the sequence
  std::vector<double> scores;      ///< of the visible keys
  std::vector<double> weights;     ///< of the visible keys; with a sink they add up to 1 − sink_weight
  double max = -std::numeric_limits<double>::infinity();  ///< of the scores and the sink; −∞ where there is neither
  double lse = -std::numeric_limits<double>::infinity();  ///< log Σ e^score, the sink included
  double sink_weight = 0;                                 ///< what the sink takes; 0 without one
};

Row attend(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i);

}  // namespace attn::reference

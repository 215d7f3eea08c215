// What the heads of a model weigh, for one text: the numbers, how they compare with simple habits, and which heads stand
// out.
//
// A map shows where a head takes its values from. It is a debugging picture, not an account of why a model said what it said
// (Jain and Wallace, 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn/status.h"

namespace attn::explain {

/// The sentence that goes with every map.
inline constexpr const char* kMapCaveat =
    "A map shows where heads take their values from. It is a debugging picture, not an account of why a model said "
    "what it said.";

struct AttentionMap {
  std::string model;                ///< what to call it
  std::vector<std::string> tokens;  ///< labels
  std::vector<bool> special;        ///< tokens that are no part of the text: begin tokens, [CLS], [SEP]
  bool causal = true;
  std::int64_t heads = 0;
  std::vector<std::int64_t> layers;  ///< those that are here, ascending
  std::vector<float> weights;        ///< [layers here][heads][tokens][tokens], rows are queries
  /// The largest difference of a weight from softmax(q·kᵀ·scale) in float64, for the same q and k.
  double fidelity = 0;
  std::int64_t rows_judged = 0;  ///< of each head: all of them, but in long texts

  std::int64_t size() const { return static_cast<std::int64_t>(tokens.size()); }
  /// A head's row: the weights of query `from`. `layer` counts those that are here.
  std::span<const float> row(std::size_t layer, std::int64_t head, std::int64_t from) const {
    const std::int64_t n = size(), at = ((static_cast<std::int64_t>(layer) * heads + head) * n + from) * n;
    return {weights.data() + at, static_cast<std::size_t>(n)};
  }
};

/// What a head does with one query, beside what it would do from habit.
struct HeadRow {
  std::int64_t layer = 0, head = 0;  ///< the model's own numbers
  std::size_t layer_here = 0;        ///< the layer's place in the map
  double first = 0;                  ///< the weight of the first token
  double previous = 0;               ///< of the token before (0 for the first token)
  double itself = 0;
  /// What tokens of the text other than the first, itself and its neighbours get above their uniform share, in all: 0 where a
  /// head only follows habits, nearly 1 where all of its weight is on some of many others.
  double beyond = 0;
  std::vector<std::int64_t> order;  ///< positions that it may see, by weight, the largest first
};

/// How heads of a map look from the token at `from`: the one that goes most beyond habits first. O(heads · tokens · log).
std::vector<HeadRow> rank_heads(const AttentionMap& map, std::int64_t from);

/// What a head does on average, over all tokens from the third on (before that, habits can't be told apart).
struct HeadHabits {
  std::int64_t layer = 0, head = 0;
  double first = 0, previous = 0, itself = 0, beyond = 0;
};
std::vector<HeadHabits> habits_of(const AttentionMap& map);

/// The token that a person means by `text`: one whose label it is (without its blank), or the last of several neighbours
/// that spell it; otherwise a 0-based position. Of several such places the last; `places` becomes their number. Errors:
/// there is none.
Status find_token(const AttentionMap& map, const std::string& text, std::int64_t* position, std::int64_t* places);

/// "▁kettle" as "kettle": how a token is named within sentences.
std::string plain_label(const std::string& label);

}  // namespace attn::explain

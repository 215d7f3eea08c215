// The recipe of attention for one row in float64, with places at which it can be made wrongly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "reference/inputs.h"

namespace attn::diagnose {

enum class Softmax : std::uint8_t {
  keys,     ///< right: each row over its keys
  queries,  ///< over the query axis
  heads,    ///< over heads
  batch,    ///< over sequences
  twice,
  scores_as_weights,  ///< none at all
  not_divided,        ///< e^(s − max), not divided by their sum
};

/// How what is hidden is hidden.
enum class Hiding : std::uint8_t {
  select,         ///< right: hidden keys take no part
  after_softmax,  ///< weights zeroed afterwards, not renormalised
  score_zero,     ///< the score set to 0
  added,          ///< true and false added as 1 and 0
  weak,           ///< the score set to weak_score
  weak_added,     ///< weak_score added to the score
};

enum class Causal : std::uint8_t {
  as_asked,
  missing,
  forced,         ///< also where it was not asked for, from the upper left corner
  forced_bottom,  ///< the same, from the lower right corner
  top_left,       ///< the other corner than was asked for
  bottom_right,
  anti,             ///< the other triangle
  diagonal_masked,  ///< a token may not see itself
  peek_one,         ///< a row sees one key too many
  chunk_uncausal,   ///< queries of this call all see each other
};

enum class Tiles : std::uint8_t {
  none,
  no_rescale,       ///< neither earlier sums nor earlier outputs rescaled when the maximum grows
  no_rescale_out,   ///< outputs not rescaled
  no_rescale_sum,   ///< sums not rescaled
  normalised_sum,   ///< each tile's softmax on its own, results added
  normalised_mean,  ///< and averaged
};

enum class Sinks : std::uint8_t { once, missing, per_tile, not_in_max };
enum class Cap : std::uint8_t { right, after_mask, times_tanh, missing };  // times_tanh: x·tanh(x / c)
enum class Groups : std::uint8_t { contiguous, tiled, repeat_sequence };

/// What every field says by default is right.
struct Recipe {
  std::optional<double> scale = std::nullopt;
  bool scales_bias = false;
  Softmax softmax = Softmax::keys;
  bool subtracts_max = true;  ///< false: e^s in f32, or in f16 where half_exponential
  bool half_exponential = false;
  Hiding hiding = Hiding::select;
  double weak_score = -1e4;
  bool inverts_mask = false;
  bool ignores_mask = false, ignores_bias = false, ignores_window = false, ignores_alibi = false;
  bool empty_row_means = false;   ///< rows that see no key give the mean of all values
  bool empty_row_is_nan = false;  ///< or 0 / 0
  Causal causal = Causal::as_asked;
  Tiles tiles = Tiles::none;
  std::int64_t tile = 64;
  std::int64_t window_left_off = 0, window_right_off = 0;  ///< keys too many (or too few, below 0)
  bool two_sided_window = false;                           ///< a left window counts to the right, too
  bool padding_on_queries = false;
  bool ignores_lengths = false;
  bool repeats_mask_by_head = false;  ///< the mask of (b, h) is that of row b·H + h counted the other way round
  Cap cap = Cap::right;
  Sinks sinks = Sinks::once;
  Groups groups = Groups::contiguous;
  double alibi_exponent_off = 0;    ///< slopes × 2^this
  bool alibi_plain_slopes = false;  ///< slopes 2^(−8h/H) also where H is no power of two
  bool merges_without_transpose = false;
  bool splits_without_transpose = false;  ///< the other way round
  bool attends_across_heads = false;
};

/// A row of out, and how far rounding may move each number of it.
struct RecipeRow {
  std::vector<double> out;
  std::vector<double> tolerance;
};

/// What rounding there was.
struct Rounding {
  double arithmetic = 0x1p-24;  ///< of f32; of a 16-bit type where `coarse`
  double stored = 0x1p-24;      ///< of the numbers as they are stored
  bool coarse = false;          ///< scores and weights are rounded once or twice each, and sums are not
};

/// Makes rows by one recipe.
class RowMaker {
 public:
  RowMaker(const reference::Inputs& inputs, const Recipe& recipe, Rounding rounding);

  /// Row i of a head of a sequence. O(M · (Dk + Dv)); a softmax over queries takes O(N · M · Dk) once a head, one over heads or
  /// sequences H or B times as long.
  RecipeRow row(std::int64_t batch, std::int64_t head, std::int64_t i);

 private:
  struct Scores;
  RecipeRow attended(std::int64_t batch, std::int64_t head, std::int64_t i);
  RecipeRow across_heads(std::int64_t batch, std::int64_t head, std::int64_t i) const;
  Scores scores(std::int64_t batch, std::int64_t head, std::int64_t i) const;
  double score(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j, double* magnitude) const;
  bool is_visible(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) const;
  std::int64_t keys_of(std::int64_t batch, std::int64_t head) const;
  std::int64_t mask_batch(std::int64_t batch, std::int64_t head) const;
  const double* key(std::int64_t batch, std::int64_t head, std::int64_t j) const;
  const double* value(std::int64_t batch, std::int64_t head, std::int64_t j) const;
  const double* grouped(const reference::Array& array, std::int64_t batch, std::int64_t head, std::int64_t j) const;
  void weigh(std::int64_t batch, std::int64_t head, std::int64_t i, Scores* scores);
  void weigh_over_other_axis(std::int64_t batch, std::int64_t head, std::int64_t i, Scores* scores);
  void weigh_in_tiles(Scores* scores) const;
  RecipeRow mix(std::int64_t batch, std::int64_t head, const Scores& scores) const;
  void set_tolerance(double magnitude, double largest_score, std::int64_t keys, RecipeRow* row) const;

  const reference::Inputs& inputs_;
  const Recipe& recipe_;
  Rounding rounding_;
  // Softmax over queries: log of each column's sum, by sequence and head.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<double>> column_sums_;
};

}  // namespace attn::diagnose

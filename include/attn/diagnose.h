// Is an answer that somebody else computed attention, and if not, which known mistake makes it?
// A library of its own beside attn: link attn::diagnose.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/export.h"
#include "attn/options.h"
#include "attn/status.h"
#include "attn/tensor.h"

namespace ATTN_EXPORT attn {

/// An entry of the catalogue of mistakes that are made when attention is written by hand.
struct Mistake {
  std::string_view id;    ///< stable, as in "scale-missing"
  std::string_view name;  ///< in a line
  std::string_view what;  ///< how it comes about, in a sentence
  std::string_view fix;   ///< what to do, in a sentence
};

/// All of them, in the catalogue's order.
std::span<const Mistake> mistakes();

/// The entry of that id; nullptr where there is none.
const Mistake* find_mistake(std::string_view id);

enum class Verdict : std::uint8_t {
  right,        ///< within the bound everywhere
  wrong,        ///< and one or more known mistakes give these very numbers
  unexplained,  ///< wrong, and no known mistake explains it
};

/// Known mistakes that together give theirs within rounding.
struct Explanation {
  std::vector<std::string> ids;
  double max_error = 0;  ///< between theirs and what the mistakes give, over the rows that were looked at
  std::string note;      ///< what exactly was assumed, as in "tiles of 64 keys"
};

/// A place in out.
struct OutPlace {
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

struct Diagnosis {
  Verdict verdict = Verdict::right;
  double max_error =
      0;  ///< largest difference from float64 attention; NaN where one of both is NaN and the other isn't
  double bound = 0;  ///< what is allowed there
  OutPlace where;    ///< of the element that is furthest beyond its bound, or nearest to it
  std::int64_t rows = 0, rows_differing = 0;  ///< of all heads and sequences
  std::vector<std::string> patterns;  ///< which rows, heads and positions differ, and what their weights and lse
                                      ///< say, in sentences
  std::vector<Explanation> explanations;  ///< best first: single mistakes, then pairs
  std::optional<Explanation> closest;     ///< where nothing explains it: the mistake that comes nearest
  std::optional<double> fitted_scale;     ///< the scale that gives theirs, where it is another than was asked for
  std::string fitted_formula;             ///< "1/sqrt(512)", where one is near
  std::vector<std::string> invisible;     ///< ids that these inputs can't show
  std::string
      precision;  ///< where it is right: the finest arithmetic that its rounding fits: "f64", "f32", "f16", "bf16"
  std::int64_t rows_judged = 0;     ///< rows that were held to the bound: the worst and some others
  std::int64_t rows_explained = 0;  ///< rows that explanations were held against: a sample, in large problems
};

/// What else is known of an answer.
struct CheckOptions {
  /// [B, Hq, N, M] or [B, Hq, N] of theirs, with out.
  std::optional<TensorView> weights = std::nullopt, lse = std::nullopt;
  /// Instead of the bound: this absolute difference is allowed everywhere.
  std::optional<double> tolerance = std::nullopt;
};

/// Holds `theirs` [B, Hq, N, Dv] against float64 attention of q, k, v under `options`. Every row is compared; rows that
/// may be wrong are then judged by an error bound per element (reference/bound.h, in any order of summation), which follows
/// from the dtypes, Dk, M and the size of the scores. Where theirs is wrong, each known mistake, then each pair of them, is
/// made and compared. Packed sequences are refused. Errors: as attn::forward(); `theirs` of another shape.
/// O(B · Hq · N · M · (Dk + Dv)), and memory for the tensors in float64.
Status check(const TensorView& q, const TensorView& k, const TensorView& v, const TensorView& theirs,
             const AttentionOptions& options, const CheckOptions& check_options, Diagnosis* diagnosis);

}  // namespace attn

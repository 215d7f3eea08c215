// Which mistakes give theirs.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/catalogue.h"
#include "diagnose/comparison.h"

namespace attn::diagnose {

/// What explanations are held against.
struct Evidence {
  const reference::Inputs& inputs;
  const Comparison& comparison;
  std::vector<RowPlace> rows;  ///< the most telling first
  Rounding rounding;           ///< of theirs
  double tolerance = 0;        ///< at least so much is allowed
};

/// How near a made row comes to another.
struct Nearness {
  bool fits = true;      ///< every element of every row within rounding
  double max_error = 0;  ///< the largest difference; infinite where one is NaN or infinite and the other is not
};

/// A form of a mistake, made on the evidence's rows.
struct Trial {
  const Entry* entry = nullptr;
  const Form* form = nullptr;
  Nearness to_ours;    ///< where it fits, these inputs can't show the mistake
  Nearness to_theirs;  ///< where it fits, the mistake explains them
};

/// Makes every form that applies. Where `theirs_too` is false only to_ours counts, and takes less time.
std::vector<Trial> try_single_mistakes(const Evidence& evidence, bool theirs_too);

/// Those that give theirs, the nearest first.
std::vector<Explanation> explanations_of(const std::vector<Trial>& trials);

/// The one that comes nearest; nothing where there is none.
std::optional<Explanation> closest_of(const std::vector<Trial>& trials);

/// Ids whose every form gives ours, or applies to no such inputs.
std::vector<std::string> invisible_of(const std::vector<Trial>& trials);

/// Pairs of mistakes, each visible alone, that give theirs. Softmax over queries is left out where a head has more than 2^18
/// pairs of queries and keys: every pair with it would take as long as all others. Empty where there are so many keys that pairs
/// would take more than some seconds.
std::vector<Explanation> pairs_of_mistakes(const Evidence& evidence, const std::vector<Trial>& trials);

/// The scale that gives theirs, if one does; not the one that was asked for. Nothing where keys are so many that looking for it
/// would take more than some seconds.
std::optional<double> fit_scale(const Evidence& evidence);

/// "1/sqrt(512)" for 0.0441942; empty where no formula of this kind is near.
std::string scale_formula(double scale);

}  // namespace attn::diagnose

// Facts around attention that the lesson tells: why scores are scaled, what a table would cost.
#pragma once

#include <vector>

#include "explain/document.h"

namespace attn::explain {

/// e^(s − max) / Σ e^(s − max).
std::vector<double> softmax(const std::vector<double>& scores);

/// Scores as far apart as those of dimension 128 are without scaling, and with it.
const std::vector<double>& spread_scores();
const std::vector<double>& scaled_scores();

/// Why scores are divided by √d: two softmaxes and what follows from them.
std::vector<Block> why_scale();

/// What the N × N table would cost, and what weights do not say.
std::vector<Block> closing_facts();

}  // namespace attn::explain

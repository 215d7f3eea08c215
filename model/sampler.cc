#include "model/sampler.h"

#include <cmath>
#include <limits>

namespace attn::model {
namespace {

Token largest(std::span<const float> logits) {
  Token best = -1;
  float most = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > most)) continue;
    most = logits[i];
    best = static_cast<Token>(i);
  }
  return best;
}

}  // namespace

Token Sampler::choose(std::span<const float> logits) {
  const Token best = largest(logits);
  if (temperature_ == 0 || best < 0) return best;
  const double most = logits[static_cast<std::size_t>(best)];
  sums_.clear();
  double sum = 0;
  for (const float logit : logits) {
    // The largest may be +∞: then it alone counts.
    const double weight = logit == most ? 1 : std::exp((logit - most) / temperature_);
    sum += std::isnan(weight) ? 0 : weight;
    sums_.push_back(sum);
  }
  // 53 bits, as a double has them: standard distributions differ from library to library.
  const double drawn = static_cast<double>(random_() >> 11) * 0x1p-53 * sum;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (drawn < sums_[i]) return static_cast<Token>(i);
  }
  return best;
}

}  // namespace attn::model

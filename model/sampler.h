// The next token, chosen from its logits.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "model/tokenizer.h"

namespace attn::model {

/// Temperature 0 takes the largest logit, the first among equals. Above 0 it draws from softmax(logits / temperature); the
/// same seed draws the same tokens from the same logits, as far as the C library's exponentials agree. A NaN is never chosen.
class Sampler {
 public:
  Sampler(double temperature, std::uint64_t seed) : temperature_(temperature), random_(seed) {}

  /// O(logits). −1 where all logits are NaN or −∞.
  Token choose(std::span<const float> logits);

 private:
  double temperature_;
  std::mt19937_64 random_;
  std::vector<double> sums_;
};

}  // namespace attn::model

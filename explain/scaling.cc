#include "explain/scaling.h"

#include <cmath>
#include <numbers>
#include <random>

#include "explain/facts.h"

namespace attn::explain {
namespace {

constexpr std::int64_t kMeasuredKeys = 2000;

// Box and Muller's: std::normal_distribution gives other numbers with every standard library.
class Normal {
 public:
  explicit Normal(std::uint32_t seed) : generator_(seed) {}
  double operator()() {
    const double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * std::numbers::pi * uniform();
    return radius * std::cos(angle);
  }

 private:
  // In (0, 1].
  double uniform() { return (static_cast<double>(generator_()) + 1) * 0x1p-32; }
  std::mt19937 generator_;
};

double spread_of(const std::vector<double>& numbers) {
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number;
  const double mean = sum / static_cast<double>(numbers.size());
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  return std::sqrt(squares / static_cast<double>(numbers.size()));
}

}  // namespace

SoftmaxAtWork softmax_at_work(const std::vector<double>& scores) {
  SoftmaxAtWork work{scores, softmax(scores), 0};
  double squares = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double slope = work.weights[i] * ((i == j ? 1 : 0) - work.weights[j]);
      squares += slope * slope;
    }
  }
  work.gradient = std::sqrt(squares);
  return work;
}

Scaling scaling_of(std::int64_t dim, std::int64_t keys, std::uint32_t seed) {
  Normal normal(seed);
  std::vector<double> products;
  for (std::int64_t n = 0; n < kMeasuredKeys; ++n) {
    double product = 0;
    for (std::int64_t d = 0; d < dim; ++d) product += normal() * normal();
    products.push_back(product);
  }
  const double root = std::sqrt(static_cast<double>(dim));
  std::vector<double> first(products.begin(), products.begin() + std::min(keys, kMeasuredKeys)), scaled;
  for (const double product : first) scaled.push_back(product / root);
  const double spread = spread_of(products);
  return {spread, spread / root, softmax_at_work(first), softmax_at_work(scaled)};
}

}  // namespace attn::explain

#include <cmath>

#include "attn/options.h"

namespace attn {
namespace {

// 2^(−8·h/heads), h = 1 … heads, for a power of two.
void append_slopes(std::int64_t heads, int first, int step, int count, std::vector<float>* slopes) {
  for (int i = 0, h = first; i < count; ++i, h += step) {
    slopes->push_back(static_cast<float>(std::exp2(-8.0 * h / static_cast<double>(heads))));
  }
}

}  // namespace

std::vector<float> alibi_slopes(int heads) {
  std::vector<float> slopes;
  if (heads <= 0) return slopes;
  int power = 1;
  while (power <= heads / 2) power *= 2;
  append_slopes(power, 1, 1, power, &slopes);
  append_slopes(std::int64_t{2} * power, 1, 2, heads - power, &slopes);
  return slopes;
}

}  // namespace attn

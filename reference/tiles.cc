// Online softmax over tiles of keys (Milakov and Gimelshein 2018; FlashAttention, Dao et al. 2022).
#include "reference/tiles.h"

#include <cmath>
#include <limits>

namespace attn::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The state after the visible keys row.keys[first … last).
Tile advance(const Tile& before, const Row& row, std::size_t first, std::size_t last, const Matrix& values) {
  Tile after;
  after.max = before.max;
  for (std::size_t n = first; n < last; ++n) after.max = std::fmax(after.max, row.scores[n]);
  // Until a score is above −∞ there is nothing to rescale and nothing to subtract.
  const double shift = after.max == -kInfinity ? 0 : after.max;
  after.rescale = std::exp(before.max - shift);
  after.sum = before.sum * after.rescale;
  for (const double o : before.out) after.out.push_back(o * after.rescale);
  for (std::size_t n = first; n < last; ++n) {
    const double e = std::exp(row.scores[n] - shift);
    const std::vector<double>& value = values[row.keys[n]];
    after.keys.push_back(row.keys[n]);
    after.exps.push_back(e);
    after.sum += e;
    for (std::size_t c = 0; c < value.size(); ++c) after.out[c] += e * value[c];
  }
  return after;
}

}  // namespace

std::vector<Tile> work_in_tiles(const Row& row, const Matrix& values, std::int64_t tile) {
  std::vector<Tile> tiles;
  Tile state;
  state.max = -kInfinity;
  state.out.assign(values.empty() ? 0 : values.front().size(), 0.0);
  std::size_t first = 0;
  while (first < row.keys.size()) {
    const std::int64_t index = row.keys[first] / tile;
    std::size_t last = first;
    while (last < row.keys.size() && row.keys[last] / tile == index) ++last;
    state = advance(state, row, first, last, values);
    tiles.push_back(state);
    first = last;
  }
  return tiles;
}

}  // namespace attn::reference

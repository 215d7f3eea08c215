// Byte-pair merging: pieces of a text that are joined, best pair first, as long as a pair may be joined.
#pragma once

#include <optional>
#include <queue>
#include <string_view>
#include <vector>

namespace attn::model {

/// Joins neighbours among `pieces`, which lie one behind the other in one text: the pair with the highest score first, the
/// leftmost among equals. `score(left, right)` is empty for pairs that are never joined. O(n log n). Source: Sennrich et
/// al., 2016.
template <class Score>
std::vector<std::string_view> merge_pieces(const std::vector<std::string_view>& pieces, const Score& score) {
  // A piece in a list of its neighbours; joined ones live on in the left one.
  struct Stretch {
    std::string_view text;
    int before, after;
  };
  struct Pair {
    double score;
    int left, right;
    std::size_t bytes;  // of both, when they were found: other than now if one has grown or is gone

    bool operator<(const Pair& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  std::vector<Stretch> stretches;
  for (const std::string_view piece : pieces) {
    const int index = static_cast<int>(stretches.size());
    stretches.push_back({piece, index - 1, index + 1});
  }
  if (stretches.empty()) return {};
  stretches.back().after = -1;

  std::priority_queue<Pair> pairs;
  const auto consider = [&](int left, int right) {
    if (left < 0 || right < 0) return;
    const std::string_view a = stretches[left].text, b = stretches[right].text;
    if (const std::optional<double> found = score(a, b)) pairs.push({*found, left, right, a.size() + b.size()});
  };
  for (int i = 0; i + 1 < static_cast<int>(stretches.size()); ++i) consider(i, i + 1);
  while (!pairs.empty()) {
    const Pair best = pairs.top();
    pairs.pop();
    Stretch &left = stretches[best.left], &right = stretches[best.right];
    if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != best.bytes) continue;
    left.text = std::string_view(left.text.data(), best.bytes);
    right.text = {};
    left.after = right.after;
    if (right.after >= 0) stretches[right.after].before = best.left;
    consider(left.before, best.left);
    consider(best.left, left.after);
  }

  std::vector<std::string_view> joined;
  for (int i = 0; i >= 0; i = stretches[i].after) joined.push_back(stretches[i].text);
  return joined;
}

}  // namespace attn::model

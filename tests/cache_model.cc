#include "cache_model.h"

#include <algorithm>
#include <set>

namespace attn::tests {

void CacheModel::append(SequenceId id, std::int64_t count) {
  Sequence& s = sequences.at(id);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto page = static_cast<std::int64_t>(s.tokens.size()) / page_tokens_;
    if (page == static_cast<std::int64_t>(s.pages.size())) s.pages.push_back(nullptr);
    // A new page, one that was dropped, or one that somebody else reads, too.
    if (s.pages[page].use_count() != 1) s.pages[page] = std::make_shared<int>();
    s.tokens.push_back(next_token_++);
  }
}

void CacheModel::truncate(SequenceId id, std::int64_t tokens) {
  Sequence& s = sequences.at(id);
  s.tokens.resize(tokens);
  s.pages.resize((tokens + page_tokens_ - 1) / page_tokens_);
  s.dropped_to = std::min(s.dropped_to, tokens);
  if (s.dropped_from >= s.dropped_to) s.dropped_from = s.dropped_to = 0;
}

bool CacheModel::drop_before(SequenceId id, std::int64_t position, std::int64_t sink_tokens) {
  Sequence& s = sequences.at(id);
  // Tokens that are gone, and that are to go: no sink among them, and one gap.
  std::vector<bool> gone(s.tokens.size());
  for (std::int64_t i = s.dropped_from; i < s.dropped_to; ++i) gone[i] = true;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(sink_tokens, gone.size()); ++i) {
    if (gone[i]) return false;
  }
  for (std::int64_t i = sink_tokens; i < position; ++i) gone[i] = true;
  const auto first = std::find(gone.begin(), gone.end(), true), end = std::find(first, gone.end(), false);
  if (std::find(end, gone.end(), true) != gone.end()) return false;
  s.dropped_from = first == gone.end() ? 0 : first - gone.begin();
  s.dropped_to = first == gone.end() ? 0 : end - gone.begin();
  for (std::size_t page = 0; page < s.pages.size(); ++page) {
    const auto from = static_cast<std::int64_t>(page) * page_tokens_;
    if (from >= s.dropped_from && from + page_tokens_ <= s.dropped_to) s.pages[page] = nullptr;
  }
  return true;
}

std::int64_t CacheModel::pages() const {
  std::set<const int*> different;
  for (const auto& [id, s] : sequences) {
    for (const auto& page : s.pages) different.insert(page.get());
  }
  different.erase(nullptr);
  return static_cast<std::int64_t>(different.size());
}

std::int64_t CacheModel::tokens() const {
  std::int64_t all = 0;
  for (const auto& [id, s] : sequences)
    all += static_cast<std::int64_t>(s.tokens.size()) - (s.dropped_to - s.dropped_from);
  return all;
}

Tensor CacheModel::keys(SequenceId id, std::int64_t first, std::int64_t count) const {
  return numbers(id, first, count, key_dim_, 1);
}

Tensor CacheModel::values(SequenceId id, std::int64_t first, std::int64_t count) const {
  return numbers(id, first, count, value_dim_, 2);
}

// The first of each group of q8 is 127, so that its scale is 1.
Tensor CacheModel::numbers(SequenceId id, std::int64_t first, std::int64_t count, std::int64_t dim,
                           std::uint64_t salt) const {
  const Sequence& s = sequences.at(id);
  Tensor tensor(DType::f32, {1, kv_heads_, count, dim});
  std::int64_t at = 0;
  for (std::int64_t h = 0; h < kv_heads_; ++h) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint64_t random = (static_cast<std::uint64_t>(s.tokens[first + i]) * 8 + salt) * 64 + h;
      for (std::int64_t d = 0; d < dim; ++d) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        tensor.set(at++, d % kScaleGroup == 0 ? 127 : static_cast<double>(random >> 40 & 15) - 8);
      }
    }
  }
  return tensor;
}

}  // namespace attn::tests

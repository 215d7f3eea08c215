// A cache's simple twin: sequences as lists of tokens, pages as things that are counted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "attn/kv_cache.h"
#include "engine_problem.h"

namespace attn::tests {

/// Tokens have numbers of their own, and a token's numbers follow from its number and its head: small whole numbers that
/// every cache type holds exactly.
class CacheModel {
 public:
  struct Sequence {
    std::vector<std::int64_t> tokens;
    std::int64_t dropped_from = 0, dropped_to = 0;
    std::vector<std::shared_ptr<int>> pages;  // nullptr: dropped
  };

  CacheModel(std::int64_t kv_heads, std::int64_t key_dim, std::int64_t value_dim, std::int64_t page_tokens)
      : kv_heads_(kv_heads), key_dim_(key_dim), value_dim_(value_dim), page_tokens_(page_tokens) {}

  std::map<SequenceId, Sequence> sequences;

  /// Gives the sequence `count` new tokens, and pages as copying on write demands.
  void append(SequenceId id, std::int64_t count);
  void truncate(SequenceId id, std::int64_t tokens);
  /// False, and nothing changed, where the sequence would have two gaps or a sink is gone.
  bool drop_before(SequenceId id, std::int64_t position, std::int64_t sink_tokens);

  /// Different pages that sequences hold.
  std::int64_t pages() const;
  std::int64_t tokens() const;

  /// k and v [1, heads, count, D] of a sequence's tokens from `first` on.
  Tensor keys(SequenceId id, std::int64_t first, std::int64_t count) const;
  Tensor values(SequenceId id, std::int64_t first, std::int64_t count) const;

 private:
  Tensor numbers(SequenceId id, std::int64_t first, std::int64_t count, std::int64_t dim, std::uint64_t salt) const;

  std::int64_t kv_heads_, key_dim_, value_dim_, page_tokens_;
  std::int64_t next_token_ = 1;
};

}  // namespace attn::tests

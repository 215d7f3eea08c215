// A problem's keys and values in a cache, and the numbers that the cache then holds.
#pragma once

#include <memory>
#include <vector>

#include "attn/kv_cache.h"
#include "engine_problem.h"

namespace attn::tests {

inline constexpr CacheType kCacheTypes[] = {CacheType::f32, CacheType::bf16, CacheType::f16, CacheType::q8};

struct CachedProblem {
  std::unique_ptr<KvCache> cache;
  std::vector<SequenceId> sequences;
};

/// A sequence without tokens.
SequenceId new_sequence(KvCache* cache);

/// The valid keys of each sequence, appended in chunks that `seed` draws, among those of sequences that come and go. Not for
/// packed sequences.
CachedProblem cached(const Problem& problem, CacheType type, std::int64_t page_tokens, std::uint64_t seed);

/// Tokens [first, first + count) of k or v [B, heads, M, D], as a tensor for append().
Tensor tokens_of(const Tensor& tensor, std::int64_t sequence, std::int64_t first, std::int64_t count);

/// The problem with the numbers that the cache holds as its k and v (f32), and the cache's longest sequence as M.
Problem with_stored_numbers(const Problem& problem, const CachedProblem& cached);

/// KvCache::attend with the problem's queries and options.
Answer attend(const Problem& problem, const CachedProblem& cached);

}  // namespace attn::tests

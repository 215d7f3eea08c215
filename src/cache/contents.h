// What a cache holds.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

#include "attn/kv_cache.h"
#include "src/cache/page_pool.h"
#include "src/cached_keys.h"

namespace attn {

/// A sequence's pages, front to back; nullptr where all of a page's tokens were dropped.
struct SequencePages {
  std::vector<Page*> pages;
  std::int64_t tokens = 0;
  std::int64_t dropped_from = 0, dropped_to = 0;
};

struct KvCache::Contents {
  KvCacheOptions options;
  PageLayout layout;
  PagePool pool;
  std::unique_ptr<std::byte, FreeMemory> zeros;
  Page empty_page;  // zeros for every head
  std::unordered_map<SequenceId, SequencePages> sequences;
  SequenceId next_id = 0;

  explicit Contents(const KvCacheOptions& o);

  /// nullptr for an unknown sequence.
  const SequencePages* find(SequenceId id) const;
  SequencePages* find(SequenceId id);

  /// Gives up the sequence's pages [first, end), as far as it has them.
  void leave_pages(SequencePages* sequence, std::size_t first, std::size_t end);

  /// The sequences as a call reads them; in `missing` the first that does not exist.
  bool read(std::span<const SequenceId> ids, std::vector<CachedSequence>* result, SequenceId* missing) const;

  static const Contents& of(const KvCache& cache) { return *cache.contents_; }
  static Contents& of(KvCache& cache) { return *cache.contents_; }
};

/// The rule that every size of a cache's options must satisfy.
Status check_cache_options(const KvCacheOptions& options);

Status unknown_sequence(SequenceId id);

}  // namespace attn

// Sequences and their pages: everything but append, attend and files.
#include "attn/kv_cache.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "src/cache/contents.h"
#include "src/sentence.h"

namespace attn {
namespace {

KvCacheOptions with_value_dim(KvCacheOptions options) {
  if (options.value_dim == 0) options.value_dim = options.key_dim;
  return options;
}

PageLayout layout_of(const KvCacheOptions& o) {
  return {{o.type, o.key_dim, o.value_dim}, o.kv_heads, o.page_tokens};
}

Status check_size(const char* name, std::int64_t size, std::int64_t most) {
  if (size >= 1 && size <= most) return {};
  return error(name, ": ", size, "; a cache has 1 to ", most);
}

}  // namespace

Status check_cache_options(const KvCacheOptions& o) {
  ATTN_RETURN_IF_ERROR(check_size("kv_heads", o.kv_heads, std::int64_t{1} << 20));
  ATTN_RETURN_IF_ERROR(check_size("key_dim", o.key_dim, std::int64_t{1} << 20));
  ATTN_RETURN_IF_ERROR(check_size("value_dim", o.value_dim, std::int64_t{1} << 20));
  constexpr std::int64_t kLargestPage = 65536;
  if (o.page_tokens < kUnitKeys || o.page_tokens > kLargestPage || (o.page_tokens & (o.page_tokens - 1)) != 0) {
    return error("page_tokens: ", o.page_tokens, "; a page has a power of two of tokens, from ", kUnitKeys, " to ",
                 kLargestPage);
  }
  if (o.type > CacheType::q8) return error("type: ", static_cast<int>(o.type), "; it is f32, bf16, f16 or q8");
  const std::int64_t page = layout_of(o).page_bytes();
  constexpr std::int64_t kLargest = std::int64_t{1} << 40;
  if (page > kLargest) {
    return error("page_tokens: a page of ", o.page_tokens, " tokens of ", o.kv_heads, " heads takes ", page,
                 " bytes, and ", kLargest, " are the most; make pages smaller");
  }
  if (o.most_bytes.value_or(page) < page) {
    return error("most_bytes: ", *o.most_bytes, ", but a page of ", o.page_tokens, " tokens takes ", page,
                 "; allow more, or make pages smaller");
  }
  return {};
}

Status unknown_sequence(SequenceId id) {
  return error("sequence: ", id,
               " is not in this cache; add_sequence() and fork() make sequences, release() ends them");
}

KvCache::Contents::Contents(const KvCacheOptions& o)
    : options(o),
      layout(layout_of(o)),
      pool(layout, o.most_bytes.value_or(std::numeric_limits<std::int64_t>::max())),
      zeros(static_cast<std::byte*>(std::calloc(1, static_cast<std::size_t>(layout.head_bytes())))),
      empty_page{zeros.get()} {
  if (!zeros) throw std::bad_alloc();
}

const SequencePages* KvCache::Contents::find(SequenceId id) const {
  const auto found = sequences.find(id);
  return found == sequences.end() ? nullptr : &found->second;
}

SequencePages* KvCache::Contents::find(SequenceId id) {
  return const_cast<SequencePages*>(std::as_const(*this).find(id));
}

void KvCache::Contents::leave_pages(SequencePages* sequence, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    if (sequence->pages[i]) pool.leave(std::exchange(sequence->pages[i], nullptr));
  }
}

bool KvCache::Contents::read(std::span<const SequenceId> ids, std::vector<CachedSequence>* result,
                             SequenceId* missing) const {
  result->reserve(ids.size());
  for (const SequenceId id : ids) {
    const SequencePages* s = find(id);
    *missing = id;
    if (!s) return false;
    result->push_back({s->pages, s->tokens, s->dropped_from, s->dropped_to});
  }
  return true;
}

KvCache::KvCache(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
KvCache::~KvCache() = default;

Status KvCache::create(const KvCacheOptions& options, std::unique_ptr<KvCache>* cache) {
  const KvCacheOptions complete = with_value_dim(options);
  ATTN_RETURN_IF_ERROR(check_cache_options(complete));
  try {
    cache->reset(new KvCache(std::make_unique<Contents>(complete)));
  } catch (const std::bad_alloc&) {
    return error("cache: a page of ", layout_of(complete).page_bytes(),
                 " bytes could not be had; make pages smaller");
  }
  return {};
}

const KvCacheOptions& KvCache::options() const { return contents_->options; }

Status KvCache::add_sequence(SequenceId* sequence) {
  try {
    contents_->sequences.emplace(contents_->next_id, SequencePages{});
  } catch (const std::bad_alloc&) {
    return error("cache: memory for one more sequence could not be had; release some");
  }
  *sequence = contents_->next_id++;
  return {};
}

Status KvCache::fork(SequenceId sequence, SequenceId* copy) {
  const SequencePages* from = contents_->find(sequence);
  if (!from) return unknown_sequence(sequence);
  try {
    const auto [to, added] = contents_->sequences.emplace(contents_->next_id, *from);
    for (Page* page : to->second.pages) {
      if (page) PagePool::share(page);
    }
  } catch (const std::bad_alloc&) {
    return error("cache: memory for a sequence of ", from->pages.size(),
                 " pages could not be had; release some sequences");
  }
  *copy = contents_->next_id++;
  return {};
}

Status KvCache::truncate(SequenceId sequence, std::int64_t tokens) {
  SequencePages* s = contents_->find(sequence);
  if (!s) return unknown_sequence(sequence);
  if (tokens < 0 || tokens > s->tokens)
    return error("tokens: ", tokens, ", but sequence ", sequence, " has ", s->tokens, "; keep 0 to all of them");
  const auto kept = static_cast<std::size_t>(divide_up(tokens, contents_->layout.page_tokens));
  contents_->leave_pages(s, kept, s->pages.size());
  s->pages.resize(kept);
  s->tokens = tokens;
  s->dropped_to = std::min(s->dropped_to, tokens);
  if (s->dropped_from >= s->dropped_to) s->dropped_from = s->dropped_to = 0;
  return {};
}

Status KvCache::drop_before(SequenceId sequence, std::int64_t position, std::int64_t sink_tokens) {
  SequencePages* s = contents_->find(sequence);
  if (!s) return unknown_sequence(sequence);
  if (position < 0 || position > s->tokens)
    return error("position: ", position, ", but sequence ", sequence, " has ", s->tokens,
                 " tokens; give 0 to that many");
  if (sink_tokens < 0) return error("sink_tokens: ", sink_tokens, "; the number of tokens that stay is 0 or more");
  const bool dropped_before = s->dropped_from < s->dropped_to;
  if (dropped_before && sink_tokens > s->dropped_from) {
    return error("sink_tokens: ", sink_tokens, ", but the tokens of sequence ", sequence, " from ", s->dropped_from,
                 " on were dropped before; keep ", s->dropped_from, " or fewer");
  }
  if (sink_tokens >= position) return {};
  if (dropped_before && position < s->dropped_from) {
    return error("position: ", position, ", but tokens ", s->dropped_from, " to ", s->dropped_to - 1,
                 " of sequence ", sequence, " were dropped before; a sequence has one gap: give ", s->dropped_from,
                 " or more");
  }
  s->dropped_from = sink_tokens;
  s->dropped_to = std::max(s->dropped_to, position);
  const std::int64_t page = contents_->layout.page_tokens;
  const std::int64_t first = divide_up(s->dropped_from, page), end = s->dropped_to / page;
  if (first < end) contents_->leave_pages(s, static_cast<std::size_t>(first), static_cast<std::size_t>(end));
  return {};
}

Status KvCache::release(SequenceId sequence) {
  SequencePages* s = contents_->find(sequence);
  if (!s) return unknown_sequence(sequence);
  contents_->leave_pages(s, 0, s->pages.size());
  contents_->sequences.erase(sequence);
  return {};
}

std::int64_t KvCache::length(SequenceId sequence) const {
  const SequencePages* s = contents_->find(sequence);
  return s ? s->tokens : -1;
}

Status KvCache::reserve(std::int64_t tokens) {
  if (tokens < 0) return error("tokens: ", tokens, "; reserve 0 or more");
  try {
    return contents_->pool.reserve(divide_up(tokens, contents_->layout.page_tokens));
  } catch (const std::bad_alloc&) {
    return error("cache: memory for ", tokens, " tokens could not be had; reserve fewer");
  }
}

std::int64_t KvCache::bytes() const { return contents_->pool.bytes(); }

KvCacheUsage KvCache::usage() const {
  const PagePool& pool = contents_->pool;
  KvCacheUsage usage{.page_bytes = pool.page_bytes(),
                     .pages = pool.pages(),
                     .pages_in_use = pool.pages() - pool.free_pages(),
                     .sequences = static_cast<std::int64_t>(contents_->sequences.size())};
  for (const auto& [id, s] : contents_->sequences) usage.tokens += s.tokens - (s.dropped_to - s.dropped_from);
  return usage;
}

}  // namespace attn

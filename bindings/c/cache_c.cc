// KV caches and rotary positions for C.
#include "bindings/c/convert.h"

using attn::c::guarded;
using attn::c::input;
using attn::c::missing;
using attn::c::output;
using attn::c::span_of;

struct attn_cache {
  std::unique_ptr<attn::KvCache> cache;
};

namespace {

// Calls a function of the cache, if there is one.
template <class Cache, class Call>
int on(Cache* cache, const Call& call) {
  return guarded([&]() -> attn::Status { return cache ? call(*cache->cache) : missing("cache"); });
}

void hand_out(std::unique_ptr<attn::KvCache> made, attn_cache** cache) { *cache = new attn_cache{std::move(made)}; }

}  // namespace

void attn_cache_options_init(attn_cache_options* options, size_t size) {
  attn_cache_options defaults{};
  defaults.page_tokens = 256;
  defaults.most_bytes = -1;
  attn::c::init_sized(defaults, size, options);
}

int attn_cache_create(const attn_cache_options* options, attn_cache** cache) {
  return guarded([&]() -> attn::Status {
    if (!options || !cache) return missing(options ? "cache" : "options");
    attn_cache_options defaults, read;
    attn_cache_options_init(&defaults, sizeof defaults);
    ATTN_RETURN_IF_ERROR(attn::c::read_sized("options", options, defaults, &read));
    if (read.type < ATTN_CACHE_F32 || read.type > ATTN_CACHE_Q8)
      return attn::Status::error("type: " + std::to_string(read.type) + "; give ATTN_CACHE_F32 or one of its like");
    attn::KvCacheOptions made{.kv_heads = read.kv_heads,
                              .key_dim = read.key_dim,
                              .value_dim = read.value_dim,
                              .type = static_cast<attn::CacheType>(read.type),
                              .page_tokens = read.page_tokens};
    if (read.most_bytes != -1) made.most_bytes = read.most_bytes;
    std::unique_ptr<attn::KvCache> created;
    ATTN_RETURN_IF_ERROR(attn::KvCache::create(made, &created));
    hand_out(std::move(created), cache);
    return {};
  });
}

void attn_cache_destroy(attn_cache* cache) { delete cache; }

int attn_cache_get_options(const attn_cache* cache, attn_cache_options* options) {
  return on(cache, [&](const attn::KvCache& c) -> attn::Status {
    if (!options) return missing("options");
    if (options->size < sizeof(std::size_t)) return attn::c::no_size("options");
    const attn::KvCacheOptions& made = c.options();
    attn_cache_options read{};
    read.kv_heads = made.kv_heads;
    read.key_dim = made.key_dim;
    read.value_dim = made.value_dim ? made.value_dim : made.key_dim;
    read.type = static_cast<int32_t>(made.type);
    read.page_tokens = made.page_tokens;
    read.most_bytes = made.most_bytes.value_or(-1);
    attn::c::write_sized(read, options);
    return {};
  });
}

int attn_cache_add_sequence(attn_cache* cache, int64_t* sequence) {
  return on(cache, [&](attn::KvCache& c) { return sequence ? c.add_sequence(sequence) : missing("sequence"); });
}

int attn_cache_append(attn_cache* cache, const int64_t* sequences, int64_t count, const attn_tensor* k,
                      const attn_tensor* v, const int64_t* starts) {
  return on(cache, [&](attn::KvCache& c) -> attn::Status {
    if (!k || !v) return missing(k ? "v" : "k");
    ATTN_RETURN_IF_ERROR(attn::c::check_list("sequences", sequences, count));
    const auto packed = starts ? span_of(starts, count + 1) : std::span<const std::int64_t>();
    return c.append(span_of(sequences, count), input(k), input(v), packed);
  });
}

int attn_cache_attend(const attn_cache* cache, const int64_t* sequences, int64_t count, const attn_tensor* q,
                      const attn_tensor* out, const attn_tensor* lse, const attn_options* options) {
  return attn::c::with_options(options, {{"cache", cache}, {"q", q}, {"out", out}},
                               [&](const attn::AttentionOptions& read) -> attn::Status {
                                 ATTN_RETURN_IF_ERROR(attn::c::check_list("sequences", sequences, count));
                                 return cache->cache->attend(span_of(sequences, count), input(q), output(out), read,
                                                             attn::c::optional_output(lse));
                               });
}

int attn_cache_fork(attn_cache* cache, int64_t sequence, int64_t* copy) {
  return on(cache, [&](attn::KvCache& c) { return copy ? c.fork(sequence, copy) : missing("copy"); });
}
int attn_cache_truncate(attn_cache* cache, int64_t sequence, int64_t tokens) {
  return on(cache, [&](attn::KvCache& c) { return c.truncate(sequence, tokens); });
}
int attn_cache_drop_before(attn_cache* cache, int64_t sequence, int64_t position, int64_t sink_tokens) {
  return on(cache, [&](attn::KvCache& c) { return c.drop_before(sequence, position, sink_tokens); });
}
int attn_cache_release(attn_cache* cache, int64_t sequence) {
  return on(cache, [&](attn::KvCache& c) { return c.release(sequence); });
}
int64_t attn_cache_length(const attn_cache* cache, int64_t sequence) {
  return cache ? cache->cache->length(sequence) : -1;
}
int attn_cache_reserve(attn_cache* cache, int64_t tokens) {
  return on(cache, [&](attn::KvCache& c) { return c.reserve(tokens); });
}
int64_t attn_cache_bytes(const attn_cache* cache) { return cache ? cache->cache->bytes() : 0; }

int attn_cache_usage(const attn_cache* cache, attn_cache_usage_info* usage) {
  return on(cache, [&](const attn::KvCache& c) -> attn::Status {
    if (!usage) return missing("usage");
    if (usage->size < sizeof(std::size_t)) return attn::c::no_size("usage");
    const attn::KvCacheUsage made = c.usage();
    attn::c::write_sized(
        attn_cache_usage_info{0, made.page_bytes, made.pages, made.pages_in_use, made.sequences, made.tokens},
        usage);
    return {};
  });
}

int attn_cache_save(const attn_cache* cache, const char* path) {
  return on(cache, [&](const attn::KvCache& c) { return path ? c.save(path) : missing("path"); });
}

int attn_cache_load(const char* path, int64_t most_bytes, attn_cache** cache) {
  return guarded([&]() -> attn::Status {
    if (!path || !cache) return missing(path ? "cache" : "path");
    std::unique_ptr<attn::KvCache> loaded;
    ATTN_RETURN_IF_ERROR(
        attn::KvCache::load(path, &loaded, most_bytes == -1 ? std::nullopt : std::optional(most_bytes)));
    hand_out(std::move(loaded), cache);
    return {};
  });
}

void attn_rope_options_init(attn_rope_options* options, size_t size) {
  attn_rope_options defaults{};
  defaults.base = 10000;
  defaults.factor = 1;
  defaults.beta_fast = 32;
  defaults.beta_slow = 1;
  defaults.attention_factor = std::nan("");
  attn::c::init_sized(defaults, size, options);
}

int attn_rotate(const attn_tensor* x, const attn_tensor* out, const int64_t* positions, int64_t position_count,
                const attn_rope_options* options) {
  return guarded([&]() -> attn::Status {
    if (!x || !out) return missing(x ? "out" : "x");
    ATTN_RETURN_IF_ERROR(attn::c::check_list("positions", positions, position_count));
    attn_rope_options defaults, read;
    attn_rope_options_init(&defaults, sizeof defaults);
    ATTN_RETURN_IF_ERROR(attn::c::read_sized("options", options, defaults, &read));
    if (read.layout < 0 || read.layout > 1 || read.scaling < 0 || read.scaling > 3)
      return attn::Status::error("layout, scaling: a number that is none; give ATTN_ROPE_HALF_SPLIT and its like");
    attn::RopeOptions made{.layout = static_cast<attn::RopeLayout>(read.layout),
                           .rotary_dim = read.rotary_dim,
                           .base = read.base,
                           .scaling = static_cast<attn::RopeScaling>(read.scaling),
                           .factor = read.factor,
                           .original_length = read.original_length,
                           .beta_fast = read.beta_fast,
                           .beta_slow = read.beta_slow};
    if (!std::isnan(read.attention_factor)) made.attention_factor = read.attention_factor;
    return attn::rotate(input(x), output(out), span_of(positions, position_count), made);
  });
}

// Every rule about what is appended to a cache.
#pragma once

#include <span>

#include "attn/kv_cache.h"
#include "src/problem.h"

namespace attn {

/// Rows to append, in four dimensions; with `starts` they are packed.
struct AppendRows {
  View4 k, v;
  std::span<const std::int64_t> starts;
};

Status check_append(const KvCacheOptions& options, const TensorView& k, const TensorView& v, std::int64_t sequences,
                    std::span<const std::int64_t> starts, AppendRows* rows);

}  // namespace attn

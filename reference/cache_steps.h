// A head worked token by token: what is kept grows by one key and one value, and only the new query is computed.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/options.h"
#include "reference/trace.h"

namespace attn::reference {

/// The steps of head `head`, from q, k and v of all heads [1, H, N, D]. No step reads a token behind its own. Where a query
/// would see later ones, `sees_later` becomes its row and the steps end there.
std::vector<CacheStep> work_through_cache(const TensorView& q, const TensorView& k, const TensorView& v,
                                          const AttentionOptions& options, std::int64_t head,
                                          std::int64_t* sees_later);

}  // namespace attn::reference

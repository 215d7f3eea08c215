#include "src/cache/check_append.h"

#include "src/check_views.h"
#include "src/sentence.h"

namespace attn {
namespace {

Status check_rows(const char* name, const TensorView& view, std::int64_t heads, std::int64_t dim, View4* result) {
  if (view.rank < 2 || view.rank > 4) {
    return error(name, ": ", view.rank, " dimensions; [n, D], [heads, n, D] or [batch, heads, n, D] is needed");
  }
  if (!is_float(view.dtype) || view.dtype == DType::f64)
    return error(name, ": dtype ", name_of(view.dtype), "; a cache takes f32, f16 or bf16");
  ATTN_RETURN_IF_ERROR(check_memory(name, view));
  *result = aligned_right<const std::byte>(view, 4);
  if (result->shape[1] != heads) {
    return error(name, ": ", result->shape[1], " heads, but the cache has ", heads, " key/value heads; give [",
                 heads, ", n, ", dim, "]");
  }
  if (result->shape[3] != dim)
    return error(name, ": head dim ", result->shape[3], ", but the cache has ", dim, "; both must be equal");
  return {};
}

}  // namespace

Status check_append(const KvCacheOptions& options, const TensorView& k, const TensorView& v, std::int64_t sequences,
                    std::span<const std::int64_t> starts, AppendRows* rows) {
  ATTN_RETURN_IF_ERROR(check_rows("k", k, options.kv_heads, options.key_dim, &rows->k));
  ATTN_RETURN_IF_ERROR(check_rows("v", v, options.kv_heads, options.value_dim, &rows->v));
  for (const int d : {0, 2}) {
    if (rows->k.shape[d] != rows->v.shape[d]) {
      return error("v: ", d == 0 ? "batch " : "tokens ", rows->v.shape[d], ", but k has ", rows->k.shape[d],
                   "; every key needs its value");
    }
  }
  rows->starts = starts;
  if (!starts.empty()) {
    if (static_cast<std::int64_t>(starts.size()) != sequences + 1)
      return error("starts: ", starts.size(), " numbers for ", sequences,
                   " sequences; give one more than sequences");
    if (rows->k.shape[0] != 1)
      return error("k: batch ", rows->k.shape[0], "; packed tensors have batch 1, starts cut them");
    return check_starts("starts", starts, rows->k.shape[2]);
  }
  if (rows->k.shape[0] != sequences) {
    return error("k: batch ", rows->k.shape[0], ", but ", sequences,
                 " sequences are given; give one entry a sequence");
  }
  return {};
}

}  // namespace attn

// Attention over a cache: check → run, as attention.cc does over tensors.
#include <new>
#include <vector>

#include "attn/kv_cache.h"
#include "src/arithmetic/float_environment.h"
#include "src/cache/contents.h"
#include "src/check.h"
#include "src/check_outputs.h"
#include "src/run/run.h"
#include "src/sentence.h"

namespace attn {

Status KvCache::attend(std::span<const SequenceId> sequences, const TensorView& q, const OutputView& out,
                       const AttentionOptions& options, const std::optional<OutputView>& lse) const {
  const DefaultFloatEnvironment environment;  // factors are rounded on this thread, too
  std::vector<CachedSequence> read;
  SequenceId missing = 0;
  try {
    if (!contents_->read(sequences, &read, &missing)) return unknown_sequence(missing);
  } catch (const std::bad_alloc&) {
    return error("sequences: memory for ", sequences.size(), " of them could not be had; give fewer at a time");
  }
  const CachedKeys cached{contents_->layout, read, &contents_->empty_page};
  Problem problem;
  Destination to;
  ATTN_RETURN_IF_ERROR(check_problem({q, nullptr, nullptr, &cached}, options, &problem));
  ATTN_RETURN_IF_ERROR(check_results(out, lse, problem, &to));
  ATTN_RETURN_IF_ERROR(check_dropped(problem));
  return run(problem, to);
}

}  // namespace attn

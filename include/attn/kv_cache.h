// A KV cache: keys and values of many sequences, stored once and read by every later query.
//
// A cache is one layer's: a model has one a layer, and the same calls in the same order give the same ids in each. Where
// append() fails in a later layer, truncate() takes the earlier ones back. Keys and values lie in pages of a pool, packed
// as the kernels stream them, and never move. Attention over it gives the bits that attn::forward gives on the same
// (stored) numbers: for f32 what was appended; for bf16, f16 and q8 the numbers rounded (docs/numerics.md). f16 holds up
// to 65,504 and infinity beyond; in q8 a NaN, an infinity or a number beyond 8.3 million makes its group of kScaleGroup
// numbers NaN.
// Source: pages and sharing as in PagedAttention (Kwon et al., 2023).
//
// Threads: const functions may run at the same time as each other; the others need the cache for themselves.
// Every function that fails leaves the cache as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "attn/dtype.h"
#include "attn/export.h"
#include "attn/options.h"
#include "attn/status.h"
#include "attn/tensor.h"

namespace ATTN_EXPORT attn {

class Executor;

/// Names a sequence of one cache. Never used again for another one.
using SequenceId = std::int64_t;

struct KvCacheOptions {
  std::int64_t kv_heads = 0;   ///< at least 1
  std::int64_t key_dim = 0;    ///< Dk, at least 1
  std::int64_t value_dim = 0;  ///< Dv, at least 1; 0: as key_dim. Values are padded to a multiple of 16
  CacheType type = CacheType::f32;
  /// Tokens of a page, a power of two from 16 to 65,536. Small pages waste less behind a sequence's end and are copied
  /// faster after a fork; from 256 on decode is fastest.
  std::int64_t page_tokens = 256;
  /// Pages take no more bytes than this; absent: as many as the machine gives.
  std::optional<std::int64_t> most_bytes = std::nullopt;
  /// Who converts what is appended, where that is much; nullptr: default_executor().
  Executor* executor = nullptr;
};

struct KvCacheUsage {
  std::int64_t page_bytes = 0;    ///< of one page
  std::int64_t pages = 0;         ///< that there is memory for, in steps of 2 MiB or a quarter of what there is
  std::int64_t pages_in_use = 0;  ///< by sequences; a page that several share counts once
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;  ///< stored, each sequence's own and shared ones alike; dropped ones not
};

class KvCache {
 public:
  /// An empty cache. Errors: a size out of range; a page larger than most_bytes; memory that can't be had.
  static Status create(const KvCacheOptions& options, std::unique_ptr<KvCache>* cache);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  const KvCacheOptions& options() const;

  /// A new sequence without tokens. O(1). Errors: memory that can't be had.
  Status add_sequence(SequenceId* sequence);

  /// Appends tokens to one sequence: k [Hkv, n, Dk], v [Hkv, n, Dv], f32, f16 or bf16, any strides ([n, D] where there is one
  /// head; a leading 1 is allowed). O(n), whatever the sequence's length, and one page copied where its last one is shared.
  /// Errors: an unknown sequence, wrong shapes, no free page within the budget.
  Status append(SequenceId sequence, const TensorView& k, const TensorView& v);

  /// The same for many sequences at once, all or none: k [B, Hkv, n, Dk]; or, with `starts` ([B + 1], ascending from 0),
  /// packed: k [1, Hkv, total, Dk], of which sequence b gets the rows from starts[b] to starts[b + 1].
  Status append(std::span<const SequenceId> sequences, const TensorView& k, const TensorView& v,
                std::span<const std::int64_t> starts = {});

  /// Attention of new queries over what the sequences hold: q [B, Hq, N, Dk], out [B, Hq, N, Dv], lse [B, Hq, N]. Ragged
  /// queries by options.query_lengths, or packed by options.query_starts (key lengths are the cache's own): a sequence's are
  /// its last tokens. Positions are absolute: token j of a sequence is at position j. Without an alignment queries are the sequence's last
  /// ones (bottom_right), so that after append() of a prompt, or of one token, causal means what it should. Masks and biases
  /// broadcast against [B, Hq, N, M], M the length of the longest sequence. A sequence may be named more than once.
  /// Time as attn::forward; memory beyond the tensors O(B + N), and of 16-bit and q8 pages those of some heads in f32 where
  /// there are many queries.
  /// Errors: as attn::forward; more queries than the sequence has tokens, where no alignment is given; key_lengths,
  /// key_starts or key_offset given; f64; an unknown sequence; a dropped token that a query would see by its intervals.
  Status attend(std::span<const SequenceId> sequences, const TensorView& q, const OutputView& out,
                const AttentionOptions& options = {}, const std::optional<OutputView>& lse = std::nullopt) const;

  /// A new sequence with the same tokens. Pages are shared; the one that both would write is copied when one does.
  /// O(pages). Errors: an unknown sequence; memory that can't be had.
  Status fork(SequenceId sequence, SequenceId* copy);

  /// Takes back all tokens from position `tokens` on (speculative decoding). Also into a dropped range: what is appended
  /// there is present again. O(pages freed). Errors: an unknown sequence; `tokens` below 0 or above the length.
  Status truncate(SequenceId sequence, std::int64_t tokens);

  /// Gives up the tokens before `position`, but for the first `sink_tokens`: for windows. Their pages are freed as far as
  /// they hold no other token; positions stay what they are. A next query at position p with window_left w sees from p − w on:
  /// drop_before(length − w), with the length that is sure where tokens may be taken back. Fewer sink tokens than before
  /// give up the others, so every call names them. O(pages freed). Errors: an unknown sequence; a position below 0
  /// or above the length; more sink tokens than an earlier call has kept.
  Status drop_before(SequenceId sequence, std::int64_t position, std::int64_t sink_tokens = 0);

  /// Forgets a sequence. O(pages freed). Errors: an unknown sequence.
  Status release(SequenceId sequence);

  /// The number of a sequence's tokens, dropped ones included; −1 for an unknown sequence.
  std::int64_t length(SequenceId sequence) const;

  /// Memory for at least so many tokens more, in pages that no sequence uses yet. Errors: beyond the budget; memory that
  /// can't be had.
  Status reserve(std::int64_t tokens);

  /// Bytes of all pages that there is memory for.
  std::int64_t bytes() const;
  /// O(sequences).
  KvCacheUsage usage() const;

  /// Writes everything to one file (under a temporary name, renamed when complete); load() makes a cache with the same
  /// sequences under the same ids. Errors: files that can't be written; a file that is no cache, of another version, cut
  /// short or changed; more than `most_bytes`. O(bytes of tokens); options().executor is not kept.
  Status save(const std::string& path) const;
  static Status load(const std::string& path, std::unique_ptr<KvCache>* cache,
                     std::optional<std::int64_t> most_bytes = std::nullopt);

  struct Contents;  // the library's own

 private:
  explicit KvCache(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

}  // namespace attn

// Key/value blocks as the kernels read them: packed once a head where several query tiles need them.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/kernels/kernels.h"
#include "src/plan/tile_plan.h"
#include "src/problem.h"
#include "src/run/scratch.h"

namespace attn {

/// Where a worker packs a block for itself.
template <class T>
struct BlockBuffer {
  T* keys = nullptr;
  T* values = nullptr;
};

/// Packs blocks, and shares them among the workers on one head.
///
/// A head in work has a slot of memory; each of its blocks is packed by the first worker that needs it. There are a
/// few slots, more than heads are in work at once as long as tasks are claimed in order; a worker that finds its
/// head's slot taken, or its block just being packed by another, packs into its own buffer: nobody ever waits.
template <class T>
class PackedBlocks {
 public:
  PackedBlocks(const Problem& problem, const KernelSet<T>& kernels, const TilePlan& tiles, int workers);

  /// Takes the shared slots' memory; called once to measure and once for real.
  void carve(Carver* carver);

  /// A worker's own buffer.
  BlockBuffer<T> carve_buffer(Carver* carver) const;

  /// Each value is read once, from memory: a few keys at a time, so that it is read front to back.
  bool values_are_streamed() const;

  /// A worker's hold on a head, for the time of a task; `slot` is −1 where blocks are packed privately.
  struct Hold {
    std::int64_t slot = -1;
    std::int64_t sequence = 0, kv_head = 0;
  };
  Hold hold(std::int64_t sequence, std::int64_t kv_head);
  void release(const Hold& hold);

  /// The block that starts at position `block`, a multiple of kBlockKeys.
  void block(const Hold& hold, const Sequence& sequence, std::int64_t block, const BlockBuffer<T>& buffer,
             KeyBlock<T>* result);

 private:
  struct Slot {
    std::atomic<std::uint64_t> head_and_users{0};  // (head + 1) << 16 | users
    std::atomic<std::uint8_t>* states = nullptr;   // one a block
    T* keys = nullptr;
    T* values = nullptr;
  };

  // Keys and values each: where the kernel finds them.
  enum class Place : std::uint8_t {
    packed,  // in a slot or a worker's buffer
    rows,    // keys: the caller's rows, packed by the kernel panel by panel; values: the caller's rows
    cached,  // a cache's units
  };

  bool try_hold(Slot* slot, std::uint64_t head);
  Place key_place() const;
  Place value_place() const;
  bool reads_units() const;
  bool packs_values() const { return values_ == Place::packed && (problem_.v.present() || problem_.cached); }
  void pack(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys, T* values) const;
  void unpack(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys, T* values) const;
  void point(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys, const T* values,
             KeyBlock<T>* result) const;
  void point_at_pages(const Hold& hold, std::int64_t block, const T* values, KeyBlock<T>* result) const;

  const Problem& problem_;
  const KernelSet<T>& kernels_;
  std::int64_t padded_key_dim_, padded_value_dim_;
  std::int64_t first_block_;  // index of the block that holds the first key
  std::int64_t blocks_;       // of the longest sequence
  std::int64_t block_keys_;   // keys that a block's memory holds: fewer where all keys fit one block
  std::int64_t slot_count_;   // 0: every block is used once, sharing would only cost
  bool streams_;              // tiles of one strip, each alone with its keys: they read from memory
  Place keys_, values_;
  Slot* slots_ = nullptr;
};

}  // namespace attn

#include "src/run/packed_blocks.h"

#include <algorithm>
#include <new>

#include "attn/numerics.h"
#include "src/arithmetic/integers.h"

namespace attn {
namespace {

enum BlockState : std::uint8_t { kUnpacked, kPacking, kReady };

constexpr std::uint64_t kUserBits = 16;
constexpr std::uint64_t kUsers = (std::uint64_t{1} << kUserBits) - 1;
constexpr std::uint64_t kResetting = kUsers;  // the slot is being handed to another head

SourceRows rows_of(const View4& view, std::int64_t batch, std::int64_t head, std::int64_t row) {
  return {view.at(batch, head, row), view.dtype, view.strides[2], view.strides[3]};
}

}  // namespace

template <class T>
PackedBlocks<T>::PackedBlocks(const Problem& problem, const KernelSet<T>& kernels, const TilePlan& tiles,
                              int workers)
    : problem_(problem),
      kernels_(kernels),
      padded_key_dim_(round_up(problem.key_dim, kernels.dim_step)),
      padded_value_dim_(round_up(problem.value_dim, kUnitKeys)),
      first_block_(problem.key_offset / kBlockKeys),
      blocks_(divide_up(problem.key_offset + problem.longest_keys, kBlockKeys) - first_block_),
      block_keys_(blocks_ > 1 ? kBlockKeys
                              : round_up(problem.key_offset % kBlockKeys + problem.longest_keys, kernels.key_step)),
      slot_count_(tiles.tiles_per_head > 1 ? std::min<std::int64_t>(problem.batch * problem.kv_heads, workers + 1)
                                           : 0),
      streams_(slot_count_ == 0 && tiles.tile_rows <= kStripRows),
      keys_(key_place()),
      values_(value_place()) {}

// Units of f32 are what kernels read; others they widen as they read them, which pays where each is read once.
template <class T>
bool PackedBlocks<T>::reads_units() const {
  return kernels_.reads_in_place && (streams_ || problem_.cached->layout.unit.type == CacheType::f32);
}

template <class T>
typename PackedBlocks<T>::Place PackedBlocks<T>::key_place() const {
  if (problem_.cached) return reads_units() ? Place::cached : Place::packed;
  return kernels_.reads_in_place && streams_ ? Place::rows : Place::packed;
}

// Values are read where they lie, if they are f32 (f64 in f64) and their rows fill whole vectors. Rows wider than a
// panel are packed if several tiles read them: neighbouring keys of a panel then lie side by side (rows of 128 columns
// ran the values' product at 81 % of the FMA peak, packed ones at 88 %).
template <class T>
typename PackedBlocks<T>::Place PackedBlocks<T>::value_place() const {
  if (slot_count_ > 0 && problem_.value_dim > kernels_.panel_columns) return Place::packed;
  if (problem_.cached) return reads_units() ? Place::cached : Place::packed;
  const View4& v = problem_.v;
  const bool readable = kernels_.reads_in_place && v.present() && size_of(v.dtype) == sizeof(T) &&
                        v.strides[3] == 1 && v.shape[3] % kUnitKeys == 0 &&
                        reinterpret_cast<std::uintptr_t>(v.data) % sizeof(T) == 0;
  return readable ? Place::rows : Place::packed;
}

template <class T>
bool PackedBlocks<T>::values_are_streamed() const {
  if (!streams_ || values_ == Place::packed) return false;
  return values_ == Place::cached || problem_.value_dim > kernels_.panel_columns;
}

template <class T>
void PackedBlocks<T>::carve(Carver* carver) {
  slots_ = carver->template take<Slot>(slot_count_);
  for (std::int64_t i = 0; i < slot_count_; ++i) {
    Slot slot_memory;
    slot_memory.states = carver->template take<std::atomic<std::uint8_t>>(blocks_);
    if (keys_ == Place::packed) slot_memory.keys = carver->template take<T>(padded_key_dim_, block_keys_, blocks_);
    if (packs_values()) slot_memory.values = carver->template take<T>(padded_value_dim_, block_keys_, blocks_);
    if (!slots_) continue;
    Slot* slot = new (&slots_[i]) Slot;
    slot->states = slot_memory.states;
    slot->keys = slot_memory.keys;
    slot->values = slot_memory.values;
    for (std::int64_t b = 0; b < blocks_; ++b) new (&slot->states[b]) std::atomic<std::uint8_t>(kUnpacked);
  }
}

template <class T>
BlockBuffer<T> PackedBlocks<T>::carve_buffer(Carver* carver) const {
  BlockBuffer<T> buffer;
  const std::int64_t panel = std::min<std::int64_t>(kKeyPanelKeys, block_keys_);
  if (keys_ != Place::cached)
    buffer.keys = carver->template take<T>(padded_key_dim_, keys_ == Place::rows ? panel : block_keys_);
  if (packs_values()) buffer.values = carver->template take<T>(padded_value_dim_, block_keys_);
  return buffer;
}

template <class T>
bool PackedBlocks<T>::try_hold(Slot* slot, std::uint64_t head) {
  std::uint64_t current = slot->head_and_users.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t users = current & kUsers;
    if (current >> kUserBits == head) {
      if (users >= kResetting - 1) return false;
      if (slot->head_and_users.compare_exchange_weak(current, current + 1, std::memory_order_acquire)) return true;
      continue;
    }
    if (users != 0) return false;
    if (!slot->head_and_users.compare_exchange_weak(current, head << kUserBits | kResetting,
                                                    std::memory_order_acquire)) {
      continue;
    }
    for (std::int64_t b = 0; b < blocks_; ++b) slot->states[b].store(kUnpacked, std::memory_order_relaxed);
    slot->head_and_users.store(head << kUserBits | 1, std::memory_order_release);
    return true;
  }
}

template <class T>
typename PackedBlocks<T>::Hold PackedBlocks<T>::hold(std::int64_t sequence, std::int64_t kv_head) {
  Hold hold{-1, sequence, kv_head};
  if (slot_count_ == 0) return hold;
  const std::int64_t head = sequence * problem_.kv_heads + kv_head;
  const std::int64_t slot = head % slot_count_;
  if (try_hold(&slots_[slot], static_cast<std::uint64_t>(head) + 1)) hold.slot = slot;
  return hold;
}

template <class T>
void PackedBlocks<T>::release(const Hold& hold) {
  if (hold.slot >= 0) slots_[hold.slot].head_and_users.fetch_sub(1, std::memory_order_release);
}

template <class T>
void PackedBlocks<T>::pack(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys,
                           T* values) const {
  if (problem_.cached) return unpack(hold, sequence, block, keys, values);
  const BlockKeys here = keys_in_block(problem_, sequence, block);
  const std::int64_t row = sequence.key_row + here.from - problem_.key_offset;
  const auto first_column = static_cast<std::int32_t>(here.from - block);
  if (keys_ == Place::packed) {
    kernels_.pack_keys(rows_of(problem_.k, sequence.tensor_batch, hold.kv_head, row), here.to - here.from,
                       first_column, problem_.key_dim, keys);
  }
  if (!values) return;
  kernels_.pack_values(rows_of(problem_.v, sequence.tensor_batch, hold.kv_head, row), here.to - here.from,
                       first_column, problem_.value_dim, block_keys_ * kUnitKeys, values);
}

template <class T>
void PackedBlocks<T>::unpack(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys,
                             T* values) const {
  const CachedKeys& cached = *problem_.cached;
  const std::int64_t tokens = keys_in_block(problem_, sequence, block).to - block;
  const std::int64_t last = round_up(tokens, kUnitKeys) - kUnitKeys;  // where the last unit that has a token starts
  for (std::int64_t first = 0; first < round_up(tokens, kernels_.key_step); first += kUnitKeys) {
    const std::int64_t unit = block + std::min(first, last),
                       here = std::clamp<std::int64_t>(tokens - first, 0, kUnitKeys);
    const auto column = static_cast<std::int32_t>(first);
    if (keys_ == Place::packed) {
      kernels_.unpack_keys(cached.layout.unit, cached.key_unit(sequence.index, hold.kv_head, unit), here, column,
                           keys);
    }
    if (values) {
      kernels_.unpack_values(cached.layout.unit, cached.value_unit(sequence.index, hold.kv_head, unit), here,
                             column, block_keys_ * kUnitKeys, values);
    }
  }
}

// Pieces of pages, as many as the block's keys lie in; values that were packed are cut alike.
template <class T>
void PackedBlocks<T>::point_at_pages(const Hold& hold, std::int64_t block, const T* values,
                                     KeyBlock<T>* result) const {
  const CachedKeys& cached = *problem_.cached;
  const UnitLayout& unit = cached.layout.unit;
  const std::int64_t piece = std::min(cached.layout.page_tokens, kBlockKeys);
  result->piece_keys = static_cast<std::int32_t>(piece);
  if (streams_) {
    result->stored = &unit;
    // Behind the last block nothing of it is read next: then it's these keys, which are there.
    const bool last = block + kBlockKeys >= cached.sequences[hold.sequence].tokens;
    result->next = cached.key_unit(hold.sequence, hold.kv_head, last ? block : block + kBlockKeys);
  }
  for (std::int64_t first = 0; first < result->end_key; first += piece) {
    result->keys[first / piece] = cached.key_unit(hold.sequence, hold.kv_head, block + first);
    result->values[first / piece] = values ? static_cast<const void*>(values + first * kUnitKeys)
                                           : cached.value_unit(hold.sequence, hold.kv_head, block + first);
  }
}

template <class T>
void PackedBlocks<T>::point(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys,
                            const T* values, KeyBlock<T>* result) const {
  const BlockKeys here = keys_in_block(problem_, sequence, block);
  const std::int64_t row = sequence.key_row + here.from - problem_.key_offset;
  result->first_key = static_cast<std::int32_t>(here.from - block);
  result->end_key = static_cast<std::int32_t>(here.to - block);
  result->piece_keys = kBlockKeys;
  result->first_value = 0;
  result->key_panel = keys;
  result->keys[0] = keys_ == Place::packed ? keys : nullptr;
  if (keys_ == Place::rows) result->key_rows = rows_of(problem_.k, sequence.tensor_batch, hold.kv_head, row);
  switch (values_) {
    case Place::packed:
      result->values[0] = values;
      result->value_stride = kUnitKeys;
      result->value_unit = block_keys_ * kUnitKeys;
      break;
    case Place::rows:
      result->values[0] = problem_.v.at(sequence.tensor_batch, hold.kv_head, row);
      result->value_stride = problem_.v.strides[2];
      result->value_unit = kUnitKeys;
      result->first_value = result->first_key;
      break;
    case Place::cached:
      result->value_stride = padded_value_dim_;
      result->value_unit = kUnitKeys;
      break;
  }
  if (keys_ == Place::cached) point_at_pages(hold, block, values, result);
}

template <class T>
void PackedBlocks<T>::block(const Hold& hold, const Sequence& sequence, std::int64_t block,
                            const BlockBuffer<T>& buffer, KeyBlock<T>* result) {
  if (hold.slot >= 0) {
    Slot& slot = slots_[hold.slot];
    const std::int64_t index = block / kBlockKeys - first_block_;
    T* keys = slot.keys ? slot.keys + index * block_keys_ * padded_key_dim_ : nullptr;
    T* values = slot.values ? slot.values + index * block_keys_ * padded_value_dim_ : nullptr;
    std::uint8_t state = slot.states[index].load(std::memory_order_acquire);
    if (state == kUnpacked &&
        slot.states[index].compare_exchange_strong(state, kPacking, std::memory_order_acquire)) {
      pack(hold, sequence, block, keys, values);
      slot.states[index].store(kReady, std::memory_order_release);
      state = kReady;
    }
    if (state == kReady) return point(hold, sequence, block, keys, values, result);
  }
  pack(hold, sequence, block, buffer.keys, buffer.values);
  point(hold, sequence, block, buffer.keys, buffer.values, result);
}

template class PackedBlocks<float>;
template class PackedBlocks<double>;

}  // namespace attn

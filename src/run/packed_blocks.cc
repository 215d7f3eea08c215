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
      keys_in_place_(kernels.reads_in_place && slot_count_ == 0 && tiles.tile_rows <= kStripRows),
      values_in_place_(values_in_place()) {}

// Values are read where they lie, if they are f32 (f64 in f64) and their rows fill whole vectors. Rows wider than a
// panel are packed if several tiles read them: neighbouring keys of a panel then lie side by side (rows of 128 columns
// ran the values' product at 81 % of the FMA peak, packed ones at 88 %).
template <class T>
bool PackedBlocks<T>::values_in_place() const {
  const View4& v = problem_.v;
  const bool packing_pays = slot_count_ > 0 && v.shape[3] > kernels_.panel_columns;
  return kernels_.reads_in_place && !packing_pays && v.present() && size_of(v.dtype) == sizeof(T) &&
         v.strides[3] == 1 && v.shape[3] % kUnitKeys == 0 &&
         reinterpret_cast<std::uintptr_t>(v.data) % sizeof(T) == 0;
}

template <class T>
void PackedBlocks<T>::carve(Carver* carver) {
  slots_ = carver->template take<Slot>(slot_count_);
  for (std::int64_t i = 0; i < slot_count_; ++i) {
    Slot slot_memory;
    slot_memory.states = carver->template take<std::atomic<std::uint8_t>>(blocks_);
    slot_memory.keys = carver->template take<T>(padded_key_dim_, block_keys_, blocks_);
    slot_memory.values = values_in_place_ || !problem_.v.present()
                             ? nullptr
                             : carver->template take<T>(padded_value_dim_, block_keys_, blocks_);
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
  const std::int64_t keys = keys_in_place_ ? std::min<std::int64_t>(kKeyPanelKeys, block_keys_) : block_keys_;
  buffer.keys = carver->template take<T>(padded_key_dim_, keys);
  if (!values_in_place_ && problem_.v.present())
    buffer.values = carver->template take<T>(padded_value_dim_, block_keys_);
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
  const BlockKeys here = keys_in_block(problem_, sequence, block);
  const std::int64_t row = sequence.key_row + here.from - problem_.key_offset;
  const auto first_column = static_cast<std::int32_t>(here.from - block);
  if (!keys_in_place_) {
    kernels_.pack_keys(rows_of(problem_.k, sequence.tensor_batch, hold.kv_head, row), here.to - here.from,
                       first_column, problem_.key_dim, keys);
  }
  if (!values) return;
  kernels_.pack_values(rows_of(problem_.v, sequence.tensor_batch, hold.kv_head, row), here.to - here.from,
                       first_column, problem_.value_dim, block_keys_ * kUnitKeys, values);
}

template <class T>
KeyBlock<T> PackedBlocks<T>::view(const Hold& hold, const Sequence& sequence, std::int64_t block, T* keys,
                                  const T* values) const {
  const BlockKeys here = keys_in_block(problem_, sequence, block);
  const std::int64_t row = sequence.key_row + here.from - problem_.key_offset;
  KeyBlock<T> view;
  view.first_key = static_cast<std::int32_t>(here.from - block);
  view.end_key = static_cast<std::int32_t>(here.to - block);
  if (keys_in_place_) {
    view.key_rows = rows_of(problem_.k, sequence.tensor_batch, hold.kv_head, row);
    view.key_panel = keys;
  } else {
    view.keys = keys;
  }
  if (values_in_place_) {
    view.values = reinterpret_cast<const T*>(problem_.v.at(sequence.tensor_batch, hold.kv_head, row));
    view.value_stride = problem_.v.strides[2];
    view.first_value = view.first_key;
    view.value_unit = kUnitKeys;
  } else {
    view.values = values;
    view.value_stride = kUnitKeys;
    view.value_unit = block_keys_ * kUnitKeys;
  }
  return view;
}

template <class T>
KeyBlock<T> PackedBlocks<T>::block(const Hold& hold, const Sequence& sequence, std::int64_t block,
                                   const BlockBuffer<T>& buffer) {
  if (hold.slot >= 0) {
    Slot& slot = slots_[hold.slot];
    const std::int64_t index = block / kBlockKeys - first_block_;
    T* keys = slot.keys + index * block_keys_ * padded_key_dim_;
    T* values = slot.values ? slot.values + index * block_keys_ * padded_value_dim_ : nullptr;
    std::uint8_t state = slot.states[index].load(std::memory_order_acquire);
    if (state == kUnpacked &&
        slot.states[index].compare_exchange_strong(state, kPacking, std::memory_order_acquire)) {
      pack(hold, sequence, block, keys, values);
      slot.states[index].store(kReady, std::memory_order_release);
      state = kReady;
    }
    if (state == kReady) return view(hold, sequence, block, keys, values);
  }
  pack(hold, sequence, block, buffer.keys, buffer.values);
  return view(hold, sequence, block, buffer.keys, buffer.values);
}

template class PackedBlocks<float>;
template class PackedBlocks<double>;

}  // namespace attn

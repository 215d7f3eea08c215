#include "src/run/tile_runner.h"

#include <algorithm>
#include <new>

#include "src/arithmetic/integers.h"
#include "src/elements.h"
#include "src/run/bias_rows.h"
#include "src/state.h"

namespace attn {
namespace {

std::int64_t segment_of(std::int64_t key) { return key / kSegmentKeys * kSegmentKeys; }

}  // namespace

template <class T>
TileRunner<T>::TileRunner(const Problem& problem, std::int64_t most_rows, const KernelSet<T>& kernels,
                          PackedBlocks<T>* blocks, Carver* carver)
    : problem_(problem),
      kernels_(kernels),
      blocks_(blocks),
      padded_key_dim_(round_up(problem.key_dim, kernels.dim_step)),
      padded_value_dim_(round_up(problem.value_dim, kUnitKeys)),
      buffer_(blocks->carve_buffer(carver)),
      queries_(carver->take<T>(padded_key_dim_, round_up(most_rows, kernels.strip_rows))),
      scores_(carver->take<T>(kBlockKeys, kernels.strip_rows)),
      columns_(carver->take<RowColumns>(most_rows)),
      state_(TileState<T>::carve(carver, most_rows, padded_value_dim_)),
      segment_state_(TileState<T>::carve(carver, most_rows, padded_value_dim_)) {
  if (blocks->values_are_streamed()) partial_out_ = carver->take<T>(padded_value_dim_, kStripRows);
  if (problem.dense_mask()) bias_ = carver->take<T>(kBlockKeys, most_rows);
  if (!problem.alibi.present()) return;
  slopes_ = carver->take<T>(most_rows);
  distances_ = carver->take<T>(most_rows);
}

template <class T>
void TileRunner<T>::begin(const TileTask& task) {
  task_ = task;
  sequence_ = problem_.sequence(task.sequence);
  keys_ = tile_keys(problem_, sequence_, position_of(0), position_of(task.rows - 1));
  hold_ = blocks_->hold(task.sequence, task.kv_head);
  pack_queries();
  prepare_row_factors();
}

template <class T>
void TileRunner<T>::end() {
  blocks_->release(hold_);
}

// Groups of kRowGroup rows, each [key_dim][rows]: the kernel broadcasts one number a row from neighbouring
// addresses.
template <class T>
void TileRunner<T>::pack_queries() {
  const View4& q = problem_.q;
  for (std::int64_t first = 0; first < task_.rows; first += kRowGroup) {
    const int count = static_cast<int>(std::min<std::int64_t>(kRowGroup, task_.rows - first));
    SourceRows rows[kRowGroup];
    for (int r = 0; r < count; ++r) {
      const std::int64_t row = sequence_.query_row + position_of(first + r);
      rows[r] = {q.at(sequence_.tensor_batch, head_of(first + r), row), q.dtype, 0, q.strides[3]};
    }
    kernels_.pack_queries(rows, count, problem_.key_dim, problem_.query_factor, queries_ + first * padded_key_dim_);
  }
}

template <class T>
void TileRunner<T>::prepare_row_factors() {
  if (!slopes_) return;
  for (std::int64_t r = 0; r < task_.rows; ++r) {
    const std::byte* slope = problem_.alibi.at(0, head_of(r), 0);
    slopes_[r] = static_cast<T>(load_element<double>(slope, problem_.alibi.dtype) * kLog2E);
  }
}

// The rows' intervals, cut to the block; false where they hide nothing.
template <class T>
bool TileRunner<T>::prepare_columns(std::int64_t block) {
  const auto [from, to] = keys_in_block(problem_, sequence_, block);
  if (keys_.sees_all(from, to)) {
    const RowColumns all{0, 0, static_cast<std::int32_t>(from - block), static_cast<std::int32_t>(to - block)};
    std::fill_n(columns_, task_.rows, all);
    return false;
  }
  const auto cut = [block](std::int64_t key) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(key - block, 0, kBlockKeys));
  };
  for (std::int64_t r = 0; r < task_.rows; ++r) {
    if (r > 0 && position_of(r) == position_of(r - 1)) {
      columns_[r] = columns_[r - 1];
      continue;
    }
    const RowKeys keys = row_keys(problem_, sequence_, position_of(r));
    columns_[r] = {cut(keys.first), cut(keys.sink_end), cut(keys.begin), cut(keys.end)};
    if (columns_[r].empty()) columns_[r] = {};
  }
  return true;
}

template <class T>
void TileRunner<T>::prepare_bias(std::int64_t block) {
  const BlockKeys here = keys_in_block(problem_, sequence_, block);
  const std::int64_t from = std::max(here.from, keys_.lowest()), to = std::min(here.to, keys_.highest());
  for (std::int64_t r = 0; r < task_.rows; ++r) {
    fill_bias_row(problem_, kernels_, {sequence_.index, head_of(r), position_of(r), from - problem_.key_offset},
                  to - from, bias_ + r * kBlockKeys + (from - block));
  }
}

// Fills in what the kernel needs to know of the block; says which of its keys the rows of the tile see.
template <class T>
typename TileRunner<T>::Sight TileRunner<T>::prepare_block(std::int64_t block, BlockTask<T>* task) {
  if (!keys_.sees_any(block, block + kBlockKeys)) return Sight::none;
  const bool partial = prepare_columns(block) || problem_.dense_mask();
  blocks_->block(hold_, sequence_, block, buffer_, &key_block_);
  task->block = &key_block_;
  task->rows = static_cast<int>(task_.rows);
  task->key_dim = problem_.key_dim;
  task->value_dim = padded_value_dim_;
  task->queries = queries_;
  task->query_stride = padded_key_dim_;
  task->columns = columns_;
  if (!kernels_.reads_in_place) task->score_factor = static_cast<T>(problem_.query_factor);
  task->cap_factor = static_cast<T>(problem_.cap_factor);
  task->partial_out = partial_out_;
  task->scores = scores_;
  if (bias_) {
    prepare_bias(block);
    task->bias = bias_;
  }
  if (slopes_) {
    for (std::int64_t r = 0; r < task_.rows; ++r) {
      const std::int64_t position = saturating_add(sequence_.position_offset, position_of(r));
      distances_[r] = static_cast<T>(saturating_add(position, -block));
    }
    task->slopes = slopes_;
    task->distances = distances_;
  }
  return partial ? Sight::some : Sight::all;
}

// True where a block hid keys from a row.
template <class T>
bool TileRunner<T>::run_blocks(std::int64_t segment, const TileState<T>& state, bool leave_out_hidden) {
  state.reset(task_.rows, padded_value_dim_);
  bool hid_keys = false;
  const std::int64_t end = std::min(segment + kSegmentKeys, keys_.highest());
  for (std::int64_t block = segment; block < end; block += kBlockKeys) {
    BlockTask<T> task;
    const Sight sight = prepare_block(block, &task);
    if (sight == Sight::none) continue;
    hid_keys = hid_keys || sight == Sight::some;
    task.leave_out_hidden = leave_out_hidden;
    task.max = state.max;
    task.sum = state.sum;
    task.out = state.out;
    kernels_.attend_block(task);
  }
  return hid_keys;
}

template <class T>
bool TileRunner<T>::holds_nan(const TileState<T>& state) const {
  // Counted, not searched for: that loop becomes vectors.
  const std::int64_t count = task_.rows * padded_value_dim_;
  return std::count_if(state.out, state.out + count, [](T x) { return x != x; }) > 0;
}

// A hidden key weighs 0, and 0·NaN is NaN: where that may have happened (it sticks, so the result shows it) the segment
// runs again and leaves hidden keys out. Free where nothing is wrong.
template <class T>
void TileRunner<T>::run_segment(std::int64_t segment, const TileState<T>& state) {
  if (run_blocks(segment, state, false) && holds_nan(state)) run_blocks(segment, state, true);
}

// Merging the first segment into the empty state would change no bit, so it is the state.
template <class T>
const TileState<T>& TileRunner<T>::attend(const TileTask& task) {
  begin(task);
  const std::int64_t first = segment_of(keys_.lowest());
  run_segment(first, state_);
  for (std::int64_t segment = first + kSegmentKeys; segment < keys_.highest(); segment += kSegmentKeys) {
    if (!keys_.sees_any(segment, segment + kSegmentKeys)) continue;
    run_segment(segment, segment_state_);
    kernels_.merge(static_cast<int>(task_.rows), padded_value_dim_, state_.max, state_.sum, state_.out,
                   segment_state_.max, segment_state_.sum, segment_state_.out);
  }
  end();
  return state_;
}

template <class T>
bool TileRunner<T>::attend_segment(const TileTask& task, std::int64_t segment, const TileState<T>& state) {
  begin(task);
  const bool seen = keys_.sees_any(segment, segment + kSegmentKeys);
  if (seen) run_segment(segment, state);
  end();
  return seen;
}

template <class T>
void TileRunner<T>::visit_scores(const TileTask& task,
                                 void (*visit)(void* context, std::int64_t block, const RowColumns* columns,
                                               const T* scores),
                                 void* context) {
  begin(task);
  for (std::int64_t block = keys_.lowest() / kBlockKeys * kBlockKeys; block < keys_.highest();
       block += kBlockKeys) {
    BlockTask<T> block_task;
    if (prepare_block(block, &block_task) == Sight::none) continue;
    kernels_.score_block(block_task);
    visit(context, block, columns_, scores_);
  }
  end();
}

template <class T>
TileRunner<T>* carve_runners(int workers, const Problem& problem, std::int64_t most_rows,
                             const KernelSet<T>& kernels, PackedBlocks<T>* blocks, Carver* carver) {
  auto* runners = carver->template take<TileRunner<T>>(workers);
  for (int w = 0; w < workers; ++w) {
    TileRunner<T> runner(problem, most_rows, kernels, blocks, carver);
    if (runners) new (&runners[w]) TileRunner<T>(runner);
  }
  return runners;
}

template TileRunner<float>* carve_runners(int, const Problem&, std::int64_t, const KernelSet<float>&,
                                          PackedBlocks<float>*, Carver*);
template TileRunner<double>* carve_runners(int, const Problem&, std::int64_t, const KernelSet<double>&,
                                           PackedBlocks<double>*, Carver*);
template class TileRunner<float>;
template class TileRunner<double>;

}  // namespace attn

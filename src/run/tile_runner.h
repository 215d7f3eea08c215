// A worker's run of one query tile over its keys: block after block, segment after segment.
#pragma once

#include <cstdint>

#include "src/kernels/kernels.h"
#include "src/plan/tile_plan.h"
#include "src/problem.h"
#include "src/run/packed_blocks.h"
#include "src/run/tile_state.h"

namespace attn {

template <class T>
class TileRunner {
 public:
  /// Takes the worker's scratch memory.
  TileRunner(const Problem& problem, std::int64_t most_rows, const KernelSet<T>& kernels, PackedBlocks<T>* blocks,
             Carver* carver);

  /// The states of all rows of the task, valid until the next call.
  const TileState<T>& attend(const TileTask& task);

  /// The state of the task's rows over the segment that starts at position `segment` alone; false where no row sees a
  /// key of it, and the state is not written.
  bool attend_segment(const TileTask& task, std::int64_t segment, const TileState<T>& state);

  /// Calls `visit(context, block, scores)` for each key block that a row of the task sees, which has the
  /// rows of one strip at most; scores [rows][kBlockKeys] are in units of log2(e), defined in the columns that
  /// `columns` says and −∞ where a key is hidden.
  void visit_scores(const TileTask& task,
                    void (*visit)(void* context, std::int64_t block, const RowColumns* columns, const T* scores),
                    void* context);

 private:
  void begin(const TileTask& task);
  void end();
  void pack_queries();
  void prepare_row_factors();
  void run_segment(std::int64_t segment, const TileState<T>& state);
  bool run_blocks(std::int64_t segment, const TileState<T>& state, bool leave_out_hidden);
  enum class Sight { none, some, all };
  Sight prepare_block(std::int64_t block, BlockTask<T>* task);
  void prepare_bias(std::int64_t block);
  bool prepare_columns(std::int64_t block);
  bool holds_nan(const TileState<T>& state) const;
  std::int64_t position_of(std::int64_t row) const { return (task_.first_row + row) / problem_.group; }
  std::int64_t head_of(std::int64_t row) const {
    return task_.kv_head * problem_.group + (task_.first_row + row) % problem_.group;
  }

  const Problem& problem_;
  const KernelSet<T>& kernels_;
  PackedBlocks<T>* blocks_;
  const std::int64_t padded_key_dim_, padded_value_dim_;

  // Scratch memory.
  BlockBuffer<T> buffer_;
  T* queries_;
  T* scores_;
  T* bias_ = nullptr;
  T* partial_out_ = nullptr;
  T* slopes_ = nullptr;
  T* distances_ = nullptr;
  RowColumns* columns_;
  TileState<T> state_, segment_state_;

  // The task in work.
  TileTask task_;
  Sequence sequence_;
  TileKeys keys_;
  typename PackedBlocks<T>::Hold hold_;
  KeyBlock<T> key_block_;
};

/// Runners for `workers` workers, with their scratch memory; nullptr where the carver only measures.
template <class T>
TileRunner<T>* carve_runners(int workers, const Problem& problem, std::int64_t most_rows,
                             const KernelSet<T>& kernels, PackedBlocks<T>* blocks, Carver* carver);

}  // namespace attn

// The states of a tile's key segments where each is a task of its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/kernels/kernels.h"
#include "src/plan/tile_plan.h"
#include "src/run/tile_state.h"

namespace attn {

/// One state a tile and segment. Whoever finishes a tile's last segment merges them: nobody waits.
template <class T>
class SegmentStates {
 public:
  /// Takes the memory; called once to measure and once for real.
  void carve(const TilePlan& plan, std::int64_t columns, Carver* carver);

  /// Where the segment's state belongs.
  TileState<T> at(std::int64_t tile, std::int64_t segment) const;

  /// Notes that a segment is done, and whether any row saw a key of it; true for the last one of its tile.
  bool finish(std::int64_t tile, std::int64_t segment, bool seen);

  /// The states of all segments seen, merged in ascending order, once all are done; of no segment, the empty state.
  TileState<T> merge(const KernelSet<T>& kernels, std::int64_t tile, std::int64_t rows) const;

 private:
  std::int64_t segments_ = 0, rows_ = 0, columns_ = 0;
  T* max_ = nullptr;  // [tiles][segments][rows padded]
  T* sum_ = nullptr;
  T* out_ = nullptr;  // [tiles][segments][rows][columns]
  std::uint8_t* seen_ = nullptr;
  std::atomic<std::int64_t>* unfinished_ = nullptr;  // segments, a tile
};

}  // namespace attn

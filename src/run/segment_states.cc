#include "src/run/segment_states.h"

#include <new>

namespace attn {

template <class T>
void SegmentStates<T>::carve(const TilePlan& plan, std::int64_t columns, Carver* carver) {
  segments_ = plan.segments;
  rows_ = plan.tile_rows;
  columns_ = columns;
  if (segments_ == 1) return;
  const std::int64_t tiles = plan.tiles();
  max_ = carver->template take<T>(round_up(rows_, kStateRows), segments_, tiles);
  sum_ = carver->template take<T>(round_up(rows_, kStateRows), segments_, tiles);
  out_ = carver->template take<T>(rows_ * columns_, segments_, tiles);
  seen_ = carver->template take<std::uint8_t>(segments_, tiles);
  unfinished_ = carver->template take<std::atomic<std::int64_t>>(tiles);
  if (!unfinished_) return;
  for (std::int64_t t = 0; t < tiles; ++t) new (&unfinished_[t]) std::atomic<std::int64_t>(segments_);
}

template <class T>
TileState<T> SegmentStates<T>::at(std::int64_t tile, std::int64_t segment) const {
  const std::int64_t index = tile * segments_ + segment, padded = round_up(rows_, kStateRows);
  return {max_ + index * padded, sum_ + index * padded, out_ + index * rows_ * columns_};
}

template <class T>
bool SegmentStates<T>::finish(std::int64_t tile, std::int64_t segment, bool seen) {
  seen_[tile * segments_ + segment] = seen;
  return unfinished_[tile].fetch_sub(1, std::memory_order_acq_rel) == 1;
}

template <class T>
TileState<T> SegmentStates<T>::merge(const KernelSet<T>& kernels, std::int64_t tile, std::int64_t rows) const {
  std::int64_t segment = 0;
  const auto seen = [&] { return seen_[tile * segments_ + segment] != 0; };
  while (segment < segments_ && !seen()) ++segment;
  if (segment == segments_) {
    const TileState<T> empty = at(tile, 0);
    empty.reset(rows, columns_);
    return empty;
  }
  const TileState<T> merged = at(tile, segment);
  for (++segment; segment < segments_; ++segment) {
    if (!seen()) continue;
    const TileState<T> next = at(tile, segment);
    kernels.merge(static_cast<int>(rows), columns_, merged.max, merged.sum, merged.out, next.max, next.sum,
                  next.out);
  }
  return merged;
}

template class SegmentStates<float>;
template class SegmentStates<double>;

}  // namespace attn

// What every view must satisfy, whatever it is for.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "src/problem.h"
#include "src/sentence.h"

namespace attn {

/// Positions and element counts stay below this, so that sums of a few of them fit 64 bits.
inline constexpr std::int64_t kMostPositions = std::int64_t{1} << 62;

template <class Pointer>
std::span<const std::int64_t> shape_of(const BasicTensorView<Pointer>& view) {
  return {view.shape.data(), static_cast<std::size_t>(view.rank)};
}

/// Sizes and offsets must fit 64 bits, and the pointer must be there where elements are.
template <class Pointer>
Status check_memory(std::string_view name, const BasicTensorView<Pointer>& view) {
  if (view.rank < 0 || view.rank > kMaxRank) {
    return error(name, ": ", view.rank, " dimensions; 0 to 4 are possible, and as many strides as sizes");
  }
  std::int64_t lowest = 0, highest = 0;
  std::int64_t elements = 1;
  for (int d = 0; d < view.rank; ++d) {
    if (view.shape[d] < 0) {
      return error(name, ": shape ", list_of(shape_of(view)), " has a negative size; sizes are 0 or more");
    }
    std::int64_t reach = 0;
    bool overflow = __builtin_mul_overflow(elements, std::max<std::int64_t>(view.shape[d], 1), &elements);
    overflow |= __builtin_mul_overflow(std::max<std::int64_t>(view.shape[d] - 1, 0), view.strides[d], &reach);
    overflow |= reach < 0 ? __builtin_add_overflow(lowest, reach, &lowest)
                          : __builtin_add_overflow(highest, reach, &highest);
    if (overflow || highest > kMostPositions / 8 || lowest < -kMostPositions / 8 || elements > kMostPositions / 4) {
      return error(name, ": shape ", list_of(shape_of(view)),
                   " reaches beyond 64-bit addresses; sizes × strides must fit");
    }
  }
  const bool has_elements =
      std::all_of(view.shape.begin(), view.shape.begin() + view.rank, [](auto n) { return n > 0; });
  if (has_elements && view.data == nullptr) {
    return error(name, ": the data pointer is null, but shape ", list_of(shape_of(view)),
                 " has elements; point it at them");
  }
  return {};
}

/// A tensor of rows: [N, D], with heads and a batch in front or without.
template <class Pointer>
Status check_rank(std::string_view name, const BasicTensorView<Pointer>& view) {
  if (view.rank >= 2 && view.rank <= 4) return {};
  return error(name, ": ", view.rank, " dimensions; [N, D], [heads, N, D] or [batch, heads, N, D] is needed");
}

/// Offsets that cut `total` packed rows: ascending from 0.
inline Status check_starts(std::string_view name, std::span<const std::int64_t> starts, std::int64_t total) {
  if (starts.front() != 0) return error(name, ": begins with ", starts.front(), "; the first sequence starts at 0");
  for (std::size_t b = 1; b < starts.size(); ++b) {
    if (starts[b] < starts[b - 1]) {
      return error(name, ": ", starts[b], " follows ", starts[b - 1], "; starts must ascend");
    }
  }
  if (starts.back() > total) {
    return error(name, ": ends at ", starts.back(), ", but the packed tensor has ", total,
                 " rows; starts must stay inside");
  }
  return {};
}

/// In four dimensions; `rank` says which of them the last one is: 4, or 3 where a row has no columns.
template <class Byte, class Pointer>
BasicView4<Byte> aligned_right(const BasicTensorView<Pointer>& view, int rank = 4) {
  BasicView4<Byte> result;
  result.data = static_cast<Byte*>(view.data);
  result.dtype = view.dtype;
  result.present_ = true;
  const int shift = rank - view.rank;
  for (int d = 0; d < view.rank; ++d) {
    result.shape[d + shift] = view.shape[d];
    result.strides[d + shift] = view.strides[d];
  }
  return result;
}

}  // namespace attn

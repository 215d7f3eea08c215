// Views of memory that belongs to the caller: pointer, dtype, shape, strides.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "attn/dtype.h"
#include "attn/export.h"

namespace ATTN_EXPORT attn {

inline constexpr int kMaxRank = 4;

/// A view of a tensor of up to four dimensions. Strides count elements, not bytes; zero (broadcast) and
/// negative ones are allowed on inputs, and so is any alignment of `data`. A view owns nothing.
template <class Pointer>
struct BasicTensorView {
  Pointer data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};

  BasicTensorView() = default;

  /// Row-major, without gaps: the last dimension has stride 1. More than kMaxRank dimensions keep their number in `rank`,
  /// and calls refuse them.
  BasicTensorView(Pointer data, DType dtype, std::span<const std::int64_t> shape)
      : data(data), dtype(dtype), rank(static_cast<int>(shape.size())) {
    std::int64_t stride = 1;
    for (int d = kept_rank() - 1; d >= 0; --d) {
      this->shape[d] = shape[d];
      strides[d] = stride;
      // Wraps instead of overflowing: sizes this large are refused when the view is used.
      stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(shape[d]));
    }
  }
  BasicTensorView(Pointer data, DType dtype, std::initializer_list<std::int64_t> shape)
      : BasicTensorView(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size())) {}

  /// With strides of one's own, in elements, one for each dimension; with another number of them the view has rank −1,
  /// which calls refuse.
  BasicTensorView(Pointer data, DType dtype, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides)
      : BasicTensorView(data, dtype, shape) {
    if (strides.size() != shape.size()) rank = -1;
    for (int d = 0; d < kept_rank(); ++d) this->strides[d] = strides[d];
  }
  BasicTensorView(Pointer data, DType dtype, std::initializer_list<std::int64_t> shape,
                  std::initializer_list<std::int64_t> strides)
      : BasicTensorView(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()),
                        std::span<const std::int64_t>(strides.begin(), strides.size())) {}

  /// A view for writing can be read, too.
  operator BasicTensorView<const void*>() const {
    BasicTensorView<const void*> view;
    view.data = data;
    view.dtype = dtype;
    view.rank = rank;
    view.shape = shape;
    view.strides = strides;
    return view;
  }

 private:
  int kept_rank() const { return rank < kMaxRank ? rank : kMaxRank; }
};

/// What the library reads.
using TensorView = BasicTensorView<const void*>;
/// What the library writes. Its elements must overlap neither each other nor an input.
using OutputView = BasicTensorView<void*>;

}  // namespace attn

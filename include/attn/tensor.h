// Views of memory that belongs to the caller: pointer, dtype, shape, strides.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "attn/dtype.h"

namespace attn {

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

  /// Row-major, without gaps: the last dimension has stride 1.
  BasicTensorView(Pointer data, DType dtype, std::span<const std::int64_t> shape)
      : data(data), dtype(dtype), rank(static_cast<int>(shape.size())) {
    assert(shape.size() <= kMaxRank);
    std::int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      this->shape[d] = shape[d];
      strides[d] = stride;
      // Wraps instead of overflowing: sizes this large are refused when the view is used.
      stride = static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) * static_cast<std::uint64_t>(shape[d]));
    }
  }
  BasicTensorView(Pointer data, DType dtype, std::initializer_list<std::int64_t> shape)
      : BasicTensorView(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size())) {}

  /// With strides of one's own, in elements, one for each dimension.
  BasicTensorView(Pointer data, DType dtype, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides)
      : BasicTensorView(data, dtype, shape) {
    assert(strides.size() == shape.size());
    for (int d = 0; d < rank; ++d) this->strides[d] = strides[d];
  }
  BasicTensorView(Pointer data, DType dtype, std::initializer_list<std::int64_t> shape,
                  std::initializer_list<std::int64_t> strides)
      : BasicTensorView(data, dtype, std::span<const std::int64_t>(shape.begin(), shape.size()),
                        std::span<const std::int64_t>(strides.begin(), strides.size())) {}

  /// A view for writing can be read, too.
  operator BasicTensorView<const void*>() const {
    return BasicTensorView<const void*>(data, dtype, std::span(shape.data(), rank),
                                        std::span(strides.data(), rank));
  }
};

/// What the library reads.
using TensorView = BasicTensorView<const void*>;
/// What the library writes. Its elements must overlap neither each other nor an input.
using OutputView = BasicTensorView<void*>;

}  // namespace attn

// A tensor for tests: it owns its memory, in any dtype and in any way that a view can lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "attn/tensor.h"

namespace attn::tests {

/// How elements lie in memory. None of this may show in a result.
enum class Layout {
  row_major,
  heads_inside,  ///< [batch, row, head, column]: dimensions 1 and 2 change places
  transposed,    ///< the last two dimensions change places
  reversed,      ///< every stride is negative
  gapped,        ///< bytes that belong to nobody lie between elements and between rows
  unaligned,     ///< starts at an odd address
};
inline constexpr Layout kLayouts[] = {Layout::row_major, Layout::heads_inside, Layout::transposed,
                                      Layout::reversed,  Layout::gapped,       Layout::unaligned};

class Tensor {
 public:
  Tensor() = default;

  /// Up to four dimensions. All memory, gaps included, holds kUntouched at first.
  Tensor(DType dtype, std::vector<std::int64_t> shape, Layout layout = Layout::row_major);

  TensorView view() const;
  OutputView output();

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }

  /// Elements. Those below are counted row-major, wherever they lie.
  std::int64_t size() const { return size_; }
  double get(std::int64_t index) const;
  void set(std::int64_t index, double value);
  std::uint64_t bits(std::int64_t index) const;
  void set_bits(std::int64_t index, std::uint64_t bits);
  void fill(const std::function<double()>& number);

  /// The element's row-major index.
  std::int64_t index(const std::vector<std::int64_t>& place) const;

  /// The bits of all elements, row-major.
  std::vector<std::uint64_t> all_bits() const;

  /// Whether every byte between elements still holds kUntouched.
  bool gaps_untouched() const;

  /// The same numbers, laid out another way or rounded to another dtype.
  Tensor in(Layout layout) const;
  Tensor in(DType dtype) const;

  /// Sizes `size` of dimension `dimension`, from `first` on: a copy.
  Tensor slice(int dimension, std::int64_t first, std::int64_t size) const;

  static constexpr std::byte kUntouched{0xA5};

 private:
  std::int64_t offset(std::int64_t index) const;  // bytes from the start of memory_

  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;
  std::int64_t size_ = 0;
  std::int64_t first_ = 0;  // byte of element 0
  bool row_major_ = true;   // elements lie as they are counted
  std::vector<std::byte> memory_;
};

/// The numbers of one dtype that tests are after: the quiet NaN as results hold it, and a signalling one.
std::uint64_t quiet_nan_bits(DType dtype);
std::uint64_t signalling_nan_bits(DType dtype);

}  // namespace attn::tests

#include "engine_tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

namespace attn::tests {
namespace {

// The dimensions from the outermost in memory to the innermost.
std::vector<int> memory_order(int rank, Layout layout) {
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (layout == Layout::heads_inside && rank >= 3) std::swap(order[rank - 3], order[rank - 2]);
  if (layout == Layout::transposed && rank >= 2) std::swap(order[rank - 2], order[rank - 1]);
  return order;
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, Layout layout)
    : dtype_(dtype), shape_(std::move(shape)), strides_(shape_.size()) {
  const int rank = static_cast<int>(shape_.size());
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  size_ = 1;
  std::int64_t stride = layout == Layout::gapped ? 2 : 1;
  const std::vector<int> order = memory_order(rank, layout);
  for (int i = rank - 1; i >= 0; --i) {
    strides_[order[i]] = stride;
    stride *= std::max<std::int64_t>(shape_[order[i]], 1);
    if (layout == Layout::gapped) stride += 3;
    size_ *= shape_[order[i]];
  }
  row_major_ = layout == Layout::row_major || layout == Layout::unaligned;
  first_ = layout == Layout::unaligned ? 1 : 0;
  std::int64_t last = first_;
  for (int d = 0; d < rank; ++d) {
    const std::int64_t reach = strides_[d] * element * std::max<std::int64_t>(shape_[d] - 1, 0);
    last += reach;
    if (layout == Layout::reversed) {
      strides_[d] = -strides_[d];
      first_ += reach;
    }
  }
  // Not one byte more: a read or write behind the end is then the sanitizer's.
  memory_.assign(size_ == 0 ? 0 : last + element, kUntouched);
}

TensorView Tensor::view() const { return {memory_.data() + first_, dtype_, shape_, strides_}; }
OutputView Tensor::output() { return {memory_.data() + first_, dtype_, shape_, strides_}; }

std::int64_t Tensor::offset(std::int64_t index) const {
  if (row_major_) return first_ + index * static_cast<std::int64_t>(size_of(dtype_));
  std::int64_t elements = 0;
  for (int d = static_cast<int>(shape_.size()) - 1; d >= 0; --d) {
    elements += index % shape_[d] * strides_[d];
    index /= shape_[d];
  }
  return first_ + elements * static_cast<std::int64_t>(size_of(dtype_));
}

std::uint64_t Tensor::bits(std::int64_t index) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, memory_.data() + offset(index), size_of(dtype_));
  return bits;
}

void Tensor::set_bits(std::int64_t index, std::uint64_t bits) {
  std::memcpy(memory_.data() + offset(index), &bits, size_of(dtype_));
}

double Tensor::get(std::int64_t index) const {
  const std::uint64_t raw = bits(index);
  switch (dtype_) {
    case DType::f64: return std::bit_cast<double>(raw);
    case DType::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
    case DType::f16: return f16_to_float(static_cast<std::uint16_t>(raw));
    case DType::bf16: return bf16_to_float(static_cast<std::uint16_t>(raw));
    case DType::boolean: return raw != 0 ? 1 : 0;
  }
  return 0;
}

void Tensor::set(std::int64_t index, double value) {
  switch (dtype_) {
    case DType::f64: return set_bits(index, std::bit_cast<std::uint64_t>(value));
    case DType::f32: return set_bits(index, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    case DType::f16: return set_bits(index, float_to_f16(static_cast<float>(value)));
    case DType::bf16: return set_bits(index, float_to_bf16(static_cast<float>(value)));
    case DType::boolean: return set_bits(index, value != 0 ? 1 : 0);
  }
}

void Tensor::fill(const std::function<double()>& number) {
  for (std::int64_t i = 0; i < size_; ++i) set(i, number());
}

std::int64_t Tensor::index(const std::vector<std::int64_t>& place) const {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) index = index * shape_[d] + place[d];
  return index;
}

std::vector<std::uint64_t> Tensor::all_bits() const {
  std::vector<std::uint64_t> all(size_);
  for (std::int64_t i = 0; i < size_; ++i) all[i] = bits(i);
  return all;
}

bool Tensor::gaps_untouched() const {
  std::vector<bool> owned(memory_.size(), false);
  for (std::int64_t i = 0; i < size_; ++i) std::fill_n(owned.begin() + offset(i), size_of(dtype_), true);
  for (std::size_t byte = 0; byte < memory_.size(); ++byte) {
    if (!owned[byte] && memory_[byte] != kUntouched) return false;
  }
  return true;
}

Tensor Tensor::in(Layout layout) const {
  Tensor other(dtype_, shape_, layout);
  for (std::int64_t i = 0; i < size_; ++i) other.set_bits(i, bits(i));
  return other;
}

Tensor Tensor::in(DType dtype) const {
  Tensor other(dtype, shape_);
  for (std::int64_t i = 0; i < size_; ++i) other.set(i, get(i));
  return other;
}

Tensor Tensor::slice(int dimension, std::int64_t first, std::int64_t size) const {
  std::vector<std::int64_t> shape = shape_;
  shape[dimension] = size;
  Tensor part(dtype_, shape);
  std::int64_t inner = 1;
  for (std::size_t d = dimension + 1; d < shape_.size(); ++d) inner *= shape_[d];
  for (std::int64_t i = 0; i < part.size(); ++i) {
    const std::int64_t outer = i / (inner * size), row = i / inner % size;
    part.set_bits(i, bits((outer * shape_[dimension] + first + row) * inner + i % inner));
  }
  return part;
}

std::uint64_t quiet_nan_bits(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x7FF8000000000000;
    case DType::f16: return 0x7E00;
    case DType::bf16: return 0x7FC0;
    default: return 0x7FC00000;
  }
}

std::uint64_t signalling_nan_bits(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x7FF0000000000001;
    case DType::f16: return 0xFC01;
    case DType::bf16: return 0x7F81;
    default: return 0xFF800001;
  }
}

}  // namespace attn::tests

// What can be asked of a tensor once it is read.
#include "formats/tensor.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace attn::formats {
namespace {

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

bool is_integer(ElementType type) { return type != ElementType::boolean && !dtype_of(type).has_value(); }

template <class Integer>
Status append_integers(const Tensor& tensor, std::size_t count, std::vector<std::int64_t>* integers) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.data);
  for (std::size_t i = 0; i < count; ++i) {
    Integer value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    if constexpr (std::is_same_v<Integer, std::uint64_t>) {
      if (value > static_cast<std::uint64_t>(kInt64Max)) {
        return Status::error(tensor.source + ": the number " + std::to_string(value) + " at index " +
                             std::to_string(i) + " is too large; the largest is 2^63 - 1");
      }
    }
    integers->push_back(static_cast<std::int64_t>(value));
  }
  return {};
}

}  // namespace

Status view_of(const Tensor& tensor, TensorView* view) {
  const auto dtype = dtype_of(tensor.type);
  if (!dtype) {
    return Status::error(tensor.source + ": holds " + name_of(tensor.type) +
                         " numbers, but attention takes f32, f64, f16 and bf16, and bool for masks; convert a mask "
                         "to bool (true = may "
                         "attend) or to a float (added to the scores), anything else to a float");
  }
  if (tensor.shape.size() > kMaxRank) {
    return Status::error(
        tensor.source + ": has " + std::to_string(tensor.shape.size()) +
        " dimensions, but attention takes at most 4, [batch, heads, rows, columns]; reshape it first");
  }
  *view = TensorView(tensor.data, *dtype, std::span(tensor.shape), std::span(tensor.strides));
  return {};
}

Status integers_of(const Tensor& tensor, std::vector<std::int64_t>* integers) {
  if (!is_integer(tensor.type)) {
    return Status::error(tensor.source + ": holds " + name_of(tensor.type) +
                         " elements where integers are needed; save it with an integer type such as i64");
  }
  if (tensor.shape.size() > 1) {
    return Status::error(tensor.source + ": has the shape " + shape_text(tensor.shape) +
                         ", but a list of integers has one dimension; flatten it first");
  }
  const std::size_t count = tensor.shape.empty() ? 1 : static_cast<std::size_t>(tensor.shape[0]);
  std::vector<std::int64_t> read;
  read.reserve(count);
  switch (tensor.type) {
    case ElementType::i8: ATTN_RETURN_IF_ERROR(append_integers<std::int8_t>(tensor, count, &read)); break;
    case ElementType::i16: ATTN_RETURN_IF_ERROR(append_integers<std::int16_t>(tensor, count, &read)); break;
    case ElementType::i32: ATTN_RETURN_IF_ERROR(append_integers<std::int32_t>(tensor, count, &read)); break;
    case ElementType::i64: ATTN_RETURN_IF_ERROR(append_integers<std::int64_t>(tensor, count, &read)); break;
    case ElementType::u8: ATTN_RETURN_IF_ERROR(append_integers<std::uint8_t>(tensor, count, &read)); break;
    case ElementType::u16: ATTN_RETURN_IF_ERROR(append_integers<std::uint16_t>(tensor, count, &read)); break;
    case ElementType::u32: ATTN_RETURN_IF_ERROR(append_integers<std::uint32_t>(tensor, count, &read)); break;
    default: ATTN_RETURN_IF_ERROR(append_integers<std::uint64_t>(tensor, count, &read)); break;
  }
  *integers = std::move(read);
  return {};
}

std::optional<std::int64_t> byte_count(std::span<const std::int64_t> shape, std::size_t element_size) {
  auto product = static_cast<std::int64_t>(element_size);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    if (product > kInt64Max / size) return std::nullopt;
    product *= size;
  }
  return empty ? 0 : product;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(shape[d]);
  }
  return text + "]";
}

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    if (shape[d] > 0) stride *= shape[d];
  }
  return strides;
}

std::vector<std::int64_t> column_major_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    strides[d] = stride;
    if (shape[d] > 0) stride *= shape[d];
  }
  return strides;
}

}  // namespace attn::formats

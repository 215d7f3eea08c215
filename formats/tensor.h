// A tensor that was read from a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn/status.h"
#include "attn/tensor.h"
#include "formats/element.h"

namespace attn::formats {

/// What NumPy allows, too.
inline constexpr std::size_t kMaxFileRank = 32;

/// Any rank up to 32, any element type. Copies share the memory, which lives as long as the last of them. The
/// elements may lie in a mapped file, at any alignment; a file that another program shortens meanwhile raises
/// SIGBUS, as with every mapping.
struct Tensor {
  std::string source;  ///< what errors call it: "k.npy", "layer.safetensors:k"
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< in elements; column-major for NumPy's Fortran order
  const void* data = nullptr;         ///< little-endian
  std::shared_ptr<const void> owner;  ///< keeps the mapping, or the inflated copy, alive
};

/// The tensor as attention takes it; valid as long as the tensor's memory. Errors: more than four dimensions; an
/// integer type.
Status view_of(const Tensor& tensor, TensorView* view);

/// The numbers of an integer tensor [B], or of a single number []. Errors: another rank; not an integer type; a
/// number beyond 2^63 − 1.
Status integers_of(const Tensor& tensor, std::vector<std::int64_t>* integers);

/// Bytes of a tensor without gaps; nothing where a size is negative or where the product of the sizes that are
/// not 0, times the element's, exceeds 2^63 − 1. Where there is a count, no stride overflows.
std::optional<std::int64_t> byte_count(std::span<const std::int64_t> shape, std::size_t element_size);

/// "[2, 3, 4]".
std::string shape_text(std::span<const std::int64_t> shape);

/// Strides in elements, last dimension fastest (row-major) or first dimension fastest (column-major). The shape
/// must have a byte_count.
std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> shape);
std::vector<std::int64_t> column_major_strides(std::span<const std::int64_t> shape);

}  // namespace attn::formats

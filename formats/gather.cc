// Writing a view whole: its elements gathered into a file's row-major order.
#include <cstring>

#include "formats/write.h"

namespace attn::formats {
namespace {

template <std::size_t element_size>
unsigned char* gather_row(const unsigned char* from, std::int64_t count, std::int64_t stride, unsigned char* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to, from + i * stride * static_cast<std::int64_t>(element_size), element_size);
    to += element_size;
  }
  return to;
}

// Returns where the next elements go.
unsigned char* gather(const TensorView& tensor, int dimension, const unsigned char* from, unsigned char* to) {
  const auto element_size = static_cast<std::int64_t>(size_of(tensor.dtype));
  if (dimension == tensor.rank) {
    std::memcpy(to, from, static_cast<std::size_t>(element_size));
    return to + element_size;
  }
  const std::int64_t count = tensor.shape[dimension];
  const std::int64_t stride = tensor.strides[dimension];
  if (dimension < tensor.rank - 1) {
    for (std::int64_t i = 0; i < count; ++i)
      to = gather(tensor, dimension + 1, from + i * stride * element_size, to);
    return to;
  }
  if (stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count * element_size));
    return to + count * element_size;
  }
  switch (element_size) {
    case 1: return gather_row<1>(from, count, stride, to);
    case 2: return gather_row<2>(from, count, stride, to);
    case 4: return gather_row<4>(from, count, stride, to);
    default: return gather_row<8>(from, count, stride, to);
  }
}

bool is_empty(const TensorView& tensor) {
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] == 0) return true;
  }
  return false;
}

}  // namespace

Status write_tensor(const std::string& path, const TensorView& tensor, std::string_view name) {
  OutputFile file;
  const std::span shape(tensor.shape.data(), static_cast<std::size_t>(tensor.rank));
  ATTN_RETURN_IF_ERROR(OutputFile::create(path, tensor.dtype, shape, &file, name));
  if (!is_empty(tensor)) {
    gather(tensor, 0, static_cast<const unsigned char*>(tensor.data),
           static_cast<unsigned char*>(file.view().data));
  }
  return file.commit();
}

}  // namespace attn::formats

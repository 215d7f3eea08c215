// Where things lie in a file with one tensor: what comes before the elements, and what after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "attn/status.h"
#include "attn/tensor.h"

namespace attn::formats {

struct Layout {
  std::string before;
  std::size_t data_bytes = 0;  ///< the elements, row-major
  std::string after;
  bool checksum = false;  ///< an .npz, to be sealed once the elements are there
};

/// The layout of a file whose extension is that of `path` ("-" counts as .npy). Errors: those of OutputFile::create
/// that don't come from the file system.
Status lay_out(const std::string& path, DType dtype, std::span<const std::int64_t> shape, std::string_view name,
               Layout* layout);

/// Puts the checksum into an .npz file that lay_out planned and whose elements have been written.
void seal_npz(const Layout& layout, unsigned char* file);

}  // namespace attn::formats

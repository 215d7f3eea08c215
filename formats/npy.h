// NumPy's .npy format, versions 1.0, 2.0 and 3.0 (numpy.lib.format): a magic string, a header that is a Python
// dict literal, then the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/status.h"
#include "formats/bytes.h"
#include "formats/tensor.h"

namespace attn::formats {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// No header of a plain tensor is longer; with it, the elements start within so many bytes.
inline constexpr std::size_t kMaxNpyHeaderBytes = 64 * 1024;

struct NpyHeader {
  ElementType type = ElementType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_offset = 0;  ///< where the elements start, from the magic string on
  std::size_t data_bytes = 0;   ///< how many bytes they take
};

/// Reads the header at the start of `file`, which may be cut after the header. Errors name `source`.
Status parse_npy_header(const std::string& source, const Bytes& file, NpyHeader* header);

/// The three entries of the header's dict as they were written.
struct NpyDict {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`: exactly these keys, once each, in any
/// order. Errors name `source`.
Status parse_npy_dict(const std::string& source, std::string_view text, NpyDict* dict);

/// A whole .npy file as a tensor; elements that are little-endian stay where they are.
Status read_npy(const std::string& source, const Bytes& file, Tensor* tensor);

/// Everything before the elements of a row-major .npy file, version 1.0. The type must have an npy_code.
std::string npy_prefix(ElementType type, std::span<const std::int64_t> shape);

}  // namespace attn::formats

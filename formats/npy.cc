// Everything of an .npy file but its header's syntax: the frame, what the dict means, the elements.
#include "formats/npy.h"

#include <algorithm>

namespace attn::formats {
namespace {

// The text of the dict, and where the elements start.
Status read_frame(const std::string& source, const Bytes& file, std::string_view* dict, std::size_t* data_offset) {
  constexpr std::size_t kVersionEnd = 8;
  if (file.text().substr(0, kNpyMagic.size()) != kNpyMagic) {
    return Status::error(source +
                         ": is no .npy file: it doesn't start with the bytes \\x93NUMPY; save it with numpy.save");
  }
  if (file.size < kVersionEnd) {
    return Status::error(source + ": ends within the .npy header, after " + std::to_string(file.size) +
                         " bytes; the file was cut short, so copy or save it again");
  }
  const int major = file.data[6];
  const int minor = file.data[7];
  if (major < 1 || major > 3 || minor != 0) {
    return Status::error(source + ": is of .npy version " + std::to_string(major) + "." + std::to_string(minor) +
                         ", but 1.0, 2.0 and 3.0 are what is read; save it again with numpy.save");
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t dict_start = kVersionEnd + length_bytes;
  std::size_t length = 0;
  if (file.size >= dict_start) {
    length =
        major == 1 ? load<std::uint16_t>(file.data + kVersionEnd) : load<std::uint32_t>(file.data + kVersionEnd);
  }
  if (dict_start + length > kMaxNpyHeaderBytes) {
    return Status::error(source + ": has an .npy header of " + std::to_string(length) + " bytes behind its first " +
                         std::to_string(dict_start) + ", but the two of a plain tensor are at most " +
                         std::to_string(kMaxNpyHeaderBytes) + " together; save it again with numpy.save");
  }
  if (file.size < dict_start + length) {
    return Status::error(source + ": ends within the .npy header, after " + std::to_string(file.size) +
                         " bytes; the file was cut short, so copy or save it again");
  }
  *dict = file.text().substr(dict_start, length);
  *data_offset = dict_start + length;
  return {};
}

Status refuse_descr(const std::string& source, const std::string& descr, const std::string& fault) {
  return Status::error(source + ": dtype " + in_quotes(descr) + " " + fault);
}

// "<f4": byte order, kind, size.
Status interpret_descr(const std::string& source, const std::string& descr, NpyHeader* header) {
  const std::string code = descr.substr(descr.empty() ? 0 : 1);
  const char order = descr.empty() ? '\0' : descr[0];
  if (descr == "O" || code == "O") {
    return refuse_descr(source, descr,
                        "holds pickled Python objects, which are never loaded; save an array of numbers instead");
  }
  if (code == "V2") {
    return refuse_descr(
        source, descr,
        "is two raw bytes without a meaning; if they are bfloat16, which .npy can't say, save them as "
        ".safetensors");
  }
  const auto type = element_type_of_npy_code(code);
  if (!type || std::string_view("<>=|").find(order) == std::string_view::npos) {
    return refuse_descr(source, descr,
                        "is not one that is read; convert it to float32, float64 or float16, or a mask to bool");
  }
  if (order == '|' && size_of(*type) > 1) {
    return refuse_descr(source, descr, "lacks a byte order; '<' or '>' must come first");
  }
  header->type = *type;
  header->big_endian = order == '>' && size_of(*type) > 1;
  return {};
}

// A little-endian copy.
Status swap_bytes(const std::string& source, const Bytes& from, std::size_t element_size, Bytes* copy) {
  unsigned char* to = nullptr;
  ATTN_RETURN_IF_ERROR(allocate(source, from.size, copy, &to));
  for (std::size_t i = 0; i < from.size; i += element_size) {
    std::reverse_copy(from.data + i, from.data + i + element_size, to + i);
  }
  return {};
}

}  // namespace

Status parse_npy_header(const std::string& source, const Bytes& file, NpyHeader* header) {
  std::string_view text;
  ATTN_RETURN_IF_ERROR(read_frame(source, file, &text, &header->data_offset));
  NpyDict dict;
  ATTN_RETURN_IF_ERROR(parse_npy_dict(source, text, &dict));
  ATTN_RETURN_IF_ERROR(interpret_descr(source, dict.descr, header));
  const auto bytes = byte_count(dict.shape, size_of(header->type));
  if (!bytes) {
    return Status::error(source + ": the shape " + shape_text(dict.shape) + " of " + name_of(header->type) +
                         " takes more than 2^63 - 1 bytes, which no file holds; save it again with numpy.save");
  }
  header->data_bytes = static_cast<std::size_t>(*bytes);
  header->fortran_order = dict.fortran_order;
  header->shape = std::move(dict.shape);
  return {};
}

Status read_npy(const std::string& source, const Bytes& file, Tensor* tensor) {
  NpyHeader header;
  ATTN_RETURN_IF_ERROR(parse_npy_header(source, file, &header));
  const std::size_t present = file.size - header.data_offset;
  if (present != header.data_bytes) {
    return Status::error(source + ": the shape " + shape_text(header.shape) + " of " + name_of(header.type) +
                         " takes " + std::to_string(header.data_bytes) + " bytes, but " + std::to_string(present) +
                         " follow the header; the file was " +
                         (present < header.data_bytes ? "cut short" : "added to") + ", so copy or save it again");
  }
  Bytes data = file.slice(header.data_offset, header.data_bytes);
  if (header.big_endian) {
    Bytes swapped;
    ATTN_RETURN_IF_ERROR(swap_bytes(source, data, size_of(header.type), &swapped));
    data = swapped;
  }
  auto strides = header.fortran_order ? column_major_strides(header.shape) : row_major_strides(header.shape);
  *tensor = {source, header.type, std::move(header.shape), std::move(strides), data.data, data.owner};
  return {};
}

std::string npy_prefix(ElementType type, std::span<const std::int64_t> shape) {
  std::string dict = "{'descr': '";
  dict += size_of(type) == 1 ? '|' : '<';
  dict += npy_code_of(type);
  dict += "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t size : shape) dict += std::to_string(size) + ", ";
  if (shape.size() > 1) dict.erase(dict.size() - 2);   // "(2, 3)"
  if (shape.size() == 1) dict.erase(dict.size() - 1);  // "(2,)"
  dict += "), }";
  // The elements start at a multiple of 64 bytes, and a newline ends the header.
  constexpr std::size_t kFrameBytes = 10;
  const std::size_t unpadded = kFrameBytes + dict.size() + 1;
  dict.append((64 - unpadded % 64) % 64, ' ');
  dict += '\n';
  std::string prefix(kNpyMagic);
  prefix += {'\x01', '\x00', static_cast<char>(dict.size() & 0xFF), static_cast<char>(dict.size() >> 8)};
  return prefix + dict;
}

}  // namespace attn::formats

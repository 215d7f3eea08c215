// The three formats as written: a header whose size is known beforehand, so that elements can be written in place.
#include "formats/layout.h"

#include <zlib.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/npy.h"
#include "formats/tensor.h"
#include "formats/write.h"

namespace attn::formats {
namespace {

// Of the zip records below, as APPNOTE.TXT (PKWARE, 6.3) has them.
constexpr std::size_t kMemberCrcOffset = 14;
constexpr std::size_t kEntryCrcOffset = 16;

template <class Integer>
void append(std::string* to, Integer value) {
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// What a member's own header and its directory entry have in common. The sizes always go into the zip64 field, as
// numpy.savez has it: one way for small and large.
void append_zip_description(std::string* to, std::string_view name) {
  append<std::uint16_t>(to, 45);            // needs version 4.5, for zip64
  append<std::uint16_t>(to, 0);             // flags
  append<std::uint16_t>(to, 0);             // stored
  append<std::uint16_t>(to, 0);             // midnight of
  append<std::uint16_t>(to, (1 << 5) | 1);  // 1 January 1980: equal tensors make equal files
  append<std::uint32_t>(to, 0);             // the checksum, filled in by seal_npz
  append<std::uint32_t>(to, 0xFFFFFFFF);
  append<std::uint32_t>(to, 0xFFFFFFFF);
  append<std::uint16_t>(to, static_cast<std::uint16_t>(name.size()));
  append<std::uint16_t>(to, 20);
}

void append_zip64_sizes(std::string* to, std::uint64_t size) {
  append<std::uint16_t>(to, 1);
  append<std::uint16_t>(to, 16);
  append<std::uint64_t>(to, size);
  append<std::uint64_t>(to, size);
}

std::string zip_member_header(const std::string& name, std::uint64_t size) {
  std::string header = "PK\x03\x04";
  append_zip_description(&header, name);
  header += name;
  append_zip64_sizes(&header, size);
  return header;
}

std::string zip_directory(const std::string& name, std::uint64_t size, std::uint64_t directory_offset) {
  std::string directory = "PK\x01\x02";
  append<std::uint16_t>(&directory, 45);
  append_zip_description(&directory, name);
  append<std::uint16_t>(&directory, 0);  // comment
  append<std::uint16_t>(&directory, 0);  // disk
  append<std::uint16_t>(&directory, 0);  // attributes, of two kinds
  append<std::uint32_t>(&directory, 0);
  append<std::uint32_t>(&directory, 0);  // the member's offset
  directory += name;
  append_zip64_sizes(&directory, size);
  const std::uint64_t directory_size = directory.size();

  directory += "PK\x06\x06";
  append<std::uint64_t>(&directory, 44);  // bytes of this record from here on
  append<std::uint16_t>(&directory, 45);
  append<std::uint16_t>(&directory, 45);
  append<std::uint64_t>(&directory, 0);  // disks
  append<std::uint64_t>(&directory, 1);  // members
  append<std::uint64_t>(&directory, 1);
  append<std::uint64_t>(&directory, directory_size);
  append<std::uint64_t>(&directory, directory_offset);

  directory += "PK\x06\x07";
  append<std::uint32_t>(&directory, 0);
  append<std::uint64_t>(&directory, directory_offset + directory_size);
  append<std::uint32_t>(&directory, 1);

  directory += "PK\x05\x06";
  append<std::uint32_t>(&directory, 0);
  append<std::uint16_t>(&directory, 1);
  append<std::uint16_t>(&directory, 1);
  append<std::uint32_t>(&directory, static_cast<std::uint32_t>(directory_size));
  append<std::uint32_t>(&directory, 0xFFFFFFFF);  // the offset is in the zip64 record
  append<std::uint16_t>(&directory, 0);
  return directory;
}

std::string safetensors_prefix(ElementType type, std::span<const std::int64_t> shape, std::string_view name,
                               std::size_t data_bytes) {
  nlohmann::ordered_json entry;
  entry["dtype"] = safetensors_name_of(type);
  entry["shape"] = std::vector<std::int64_t>(shape.begin(), shape.end());
  entry["data_offsets"] = {0, data_bytes};
  const nlohmann::ordered_json header = {{std::string(name), entry}};
  std::string text = header.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');  // the elements start at a multiple of 8
  std::string prefix;
  append<std::uint64_t>(&prefix, text.size());
  return prefix + text;
}

Status refuse_extension(const std::string& path) {
  return Status::error(path +
                       ": its extension chooses the format and must be .npy, .npz or .safetensors; rename it, "
                       "or give - for .npy on standard output");
}

}  // namespace

Status lay_out(const std::string& path, DType dtype, std::span<const std::int64_t> shape, std::string_view name,
               Layout* layout) {
  const bool safetensors = path.ends_with(".safetensors");
  const bool npz = path.ends_with(".npz");
  if (path.find('\0') != std::string::npos || (!safetensors && !npz && !path.ends_with(".npy") && path != "-")) {
    return refuse_extension(path);
  }
  if (dtype == DType::bf16 && !safetensors) {
    return Status::error(path +
                         ": .npy and .npz files can't hold bf16, which NumPy doesn't have; write .safetensors, "
                         "or another dtype");
  }
  if (name.empty() || name.size() > 1000) {
    return Status::error(path + ": the tensor's name has " + std::to_string(name.size()) +
                         " bytes; give one of 1 to 1000");
  }
  const ElementType type = element_type_of(dtype);
  const auto bytes = byte_count(shape, size_of(dtype));
  constexpr std::int64_t kHeaderRoom = 1 << 20;
  if (!bytes || *bytes > std::numeric_limits<std::int64_t>::max() - kHeaderRoom || shape.size() > kMaxRank) {
    return Status::error(path + ": the shape " + shape_text(shape) + " of " + name_of(type) +
                         " can't be written; it takes up to 4 sizes from 0 up, and less than 2^63 bytes");
  }
  layout->data_bytes = static_cast<std::size_t>(*bytes);
  layout->checksum = npz;
  layout->before =
      safetensors ? safetensors_prefix(type, shape, name, layout->data_bytes) : npy_prefix(type, shape);
  if (npz) {
    const std::string member = std::string(name) + ".npy";
    const std::uint64_t size = layout->before.size() + layout->data_bytes;
    layout->before.insert(0, zip_member_header(member, size));
    layout->after = zip_directory(member, size, layout->before.size() + layout->data_bytes);
  }
  return {};
}

void seal_npz(const Layout& layout, unsigned char* file) {
  const std::size_t member_start = layout.before.rfind(kNpyMagic);
  unsigned char* const directory = file + layout.before.size() + layout.data_bytes;
  const auto crc = static_cast<std::uint32_t>(crc32_z(crc32_z(0, nullptr, 0), file + member_start,
                                                      static_cast<std::size_t>(directory - file) - member_start));
  std::memcpy(file + kMemberCrcOffset, &crc, sizeof crc);
  std::memcpy(directory + kEntryCrcOffset, &crc, sizeof crc);
}

std::string as_safetensors(std::span<const std::pair<std::string, TensorView>> tensors) {
  nlohmann::ordered_json header;
  std::string data;
  for (const auto& [name, view] : tensors) {
    const std::vector<std::int64_t> shape(view.shape.begin(), view.shape.begin() + view.rank);
    const std::size_t begin = data.size();
    data.append(static_cast<const char*>(view.data),
                static_cast<std::size_t>(byte_count(shape, size_of(view.dtype)).value_or(0)));
    header[name] = {{"dtype", safetensors_name_of(element_type_of(view.dtype))},
                    {"shape", shape},
                    {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string file;
  append<std::uint64_t>(&file, text.size());
  return file + text + data;
}

}  // namespace attn::formats

// Members of .npz files.
#include <zlib.h>

#include <algorithm>

#include "formats/containers.h"
#include "formats/inflate.h"
#include "formats/npy.h"
#include "formats/zip.h"

namespace attn::formats {
namespace {

constexpr std::string_view kSuffix = ".npy";

// "k" and "k.npy" are the same member, as in numpy.load; a member that is really called "k.npy.npy" is "k.npy".
std::string without_suffix(const std::string& name) {
  return name.ends_with(kSuffix) ? name.substr(0, name.size() - kSuffix.size()) : name;
}

Status check_crc(const std::string& source, const ZipMember& member, const Bytes& contents) {
  if (crc32_z(crc32_z(0, nullptr, 0), contents.data, contents.size) == member.crc) return {};
  return Status::error(source +
                       ": the checksum doesn't match the contents, which have changed since they were "
                       "written; copy or save the file again");
}

// The claimed size is believed, and memory taken for it, only once the header inside agrees with it.
Status inflate_member(const std::string& source, const ZipMember& member, const Bytes& deflated, Bytes* contents) {
  const auto corrupt = [&source](const std::string& fault) {
    return Status::error(source + ": " + fault + "; save it again with numpy.savez_compressed");
  };
  if (member.size / kMaxDeflateRatio > member.stored_size) {
    return corrupt("claims to inflate from " + std::to_string(member.stored_size) + " bytes to " +
                   std::to_string(member.size) + ", further than deflate can");
  }
  Inflater inflater(deflated);
  const std::size_t start_bytes = std::min<std::size_t>(member.size, kMaxNpyHeaderBytes);
  unsigned char* start = nullptr;
  Bytes start_of_member;
  ATTN_RETURN_IF_ERROR(allocate(source, start_bytes, &start_of_member, &start));
  if (!inflater.read(start, start_bytes)) return corrupt("holds deflated data that are corrupt or end too soon");
  NpyHeader header;
  ATTN_RETURN_IF_ERROR(parse_npy_header(source, start_of_member, &header));
  if (member.size - header.data_offset != header.data_bytes) {
    return corrupt("the shape " + shape_text(header.shape) + " of " + name_of(header.type) + " takes " +
                   std::to_string(header.data_bytes) + " bytes, but the archive says that " +
                   std::to_string(member.size - header.data_offset) + " follow the header");
  }
  unsigned char* whole = nullptr;
  ATTN_RETURN_IF_ERROR(allocate(source, member.size, contents, &whole));
  std::copy_n(start, start_bytes, whole);
  if (!inflater.read(whole + start_bytes, member.size - start_bytes) || !inflater.finished()) {
    return corrupt("holds deflated data that are corrupt or of another size than stated");
  }
  return {};
}

Status read_member(const std::string& source, const Bytes& file, const ZipMember& member, Tensor* tensor) {
  if (member.encrypted()) {
    return Status::error(source + ": is encrypted, which is not read; save it without a password");
  }
  const Bytes stored = file.slice(member.data_offset, member.stored_size);
  Bytes contents = stored;
  if (member.method == kZipDeflated) {
    ATTN_RETURN_IF_ERROR(inflate_member(source, member, stored, &contents));
  } else if (member.method != kZipStored) {
    return Status::error(source + ": is compressed with zip method " + std::to_string(member.method) +
                         ", but only stored (0) and deflated (8) members are read; save it again with numpy.savez");
  } else if (member.size != member.stored_size) {
    return Status::error(source + ": is stored as it is, yet has two different sizes, " +
                         std::to_string(member.stored_size) + " and " + std::to_string(member.size) +
                         " bytes; save it again with numpy.savez");
  }
  ATTN_RETURN_IF_ERROR(check_crc(source, member, contents));
  return read_npy(source, contents, tensor);
}

}  // namespace

Status read_npz(const std::string& path, const Bytes& file, const std::optional<std::string>& name,
                Tensor* tensor) {
  std::vector<ZipMember> members;
  ATTN_RETURN_IF_ERROR(read_zip_directory(path, file, &members));
  std::erase_if(members, [](const ZipMember& member) { return !member.name.ends_with(kSuffix); });
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const ZipMember& member : members) names.push_back(without_suffix(member.name));
  const bool exact = name && std::find(names.begin(), names.end(), *name) != names.end();
  const auto wanted = name && !exact ? without_suffix(*name) : name;
  std::size_t index = 0;
  ATTN_RETURN_IF_ERROR(choose_name(path, names, wanted, &index));
  return read_member(path + ":" + printable(names[index]), file, members[index], tensor);
}

}  // namespace attn::formats

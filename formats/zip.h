// The zip container, as far as .npz files need it: the directory, checked against what it points to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attn/status.h"
#include "formats/bytes.h"

namespace attn::formats {

inline constexpr std::uint16_t kZipStored = 0;
inline constexpr std::uint16_t kZipDeflated = 8;

struct ZipMember {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;         ///< once inflated; a claim, until it is
  std::uint64_t stored_size = 0;  ///< in the file
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;

  bool encrypted() const { return (flags & 1) != 0; }
};

/// Reads the central directory, zip64 included, and every member's own header. Afterwards each member's range of
/// bytes lies within the file, apart from all others and from the directory, and no name is there twice. Errors
/// name `source`, and the member where there is one.
Status read_zip_directory(const std::string& source, const Bytes& file, std::vector<ZipMember>* members);

}  // namespace attn::formats

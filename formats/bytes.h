// Bytes that somebody keeps alive: a mapped file, a piece of one, or an owned copy.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "attn/status.h"

namespace attn::formats {

static_assert(std::endian::native == std::endian::little, "tensors are read in place, which needs little-endian");

/// Read-only; copies share the memory.
struct Bytes {
  const unsigned char* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;

  /// A piece that keeps the whole alive. The range must lie within the bytes.
  Bytes slice(std::size_t offset, std::size_t count) const { return {data + offset, count, owner}; }

  std::string_view text() const { return {reinterpret_cast<const char*>(data), size}; }
};

/// A little-endian number at any alignment.
template <class Integer>
Integer load(const unsigned char* from) {
  Integer value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Maps a file read-only. Errors, naming the path: missing, not readable, not a regular file (which is refused
/// without waiting, as for a pipe), empty.
Status map_file(const std::string& path, Bytes* bytes);

/// Memory of one's own, its contents not yet set; `*writable` points to it. An error, naming `source`, where there
/// is not enough. The caller has checked that `size` is a plausible claim.
Status allocate(const std::string& source, std::size_t size, Bytes* bytes, unsigned char** writable);

/// Text from a file, made fit for one line on a terminal: what is not printable ASCII becomes '?', and what goes
/// beyond 80 characters "...".
std::string printable(std::string_view text);

/// The same in quotes.
std::string in_quotes(std::string_view text);

/// "no such file or directory": what the system says of an errno.
std::string system_message(int error_number);

}  // namespace attn::formats

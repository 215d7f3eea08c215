// Mapping files, and memory for what can't be mapped.
#include "formats/bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace attn::formats {
namespace {

Status map_descriptor(int descriptor, const std::string& path, Bytes* bytes) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) {
    return Status::error(path + ": can't be read: " + system_message(errno));
  }
  if (S_ISDIR(facts.st_mode)) return Status::error(path + ": is a directory; name a tensor file in it");
  if (!S_ISREG(facts.st_mode)) {
    return Status::error(path +
                         ": is not a regular file, but tensors are read from files that can be mapped; "
                         "save it to a file first");
  }
  if (facts.st_size == 0) {
    return Status::error(path + ": is empty; a tensor file has at least a header, so write it anew");
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  void* const start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) return Status::error(path + ": can't be mapped: " + system_message(errno));
  bytes->owner =
      std::shared_ptr<const void>(start, [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  bytes->data = static_cast<const unsigned char*>(start);
  bytes->size = size;
  return {};
}

}  // namespace

Status map_file(const std::string& path, Bytes* bytes) {
  // O_NONBLOCK: a pipe that nobody writes to would otherwise block here.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ENOENT) return Status::error(path + ": there is no such file; check the path");
    return Status::error(path + ": can't be opened: " + system_message(errno));
  }
  Status status = map_descriptor(descriptor, path, bytes);
  close(descriptor);
  return status;
}

Status allocate(const std::string& source, std::size_t size, Bytes* bytes, unsigned char** writable) {
  auto* const memory = new (std::nothrow) unsigned char[size];
  if (memory == nullptr) {
    return Status::error(source + ": needs " + std::to_string(size) +
                         " bytes of memory, which can't be had; store it uncompressed and little-endian, so that "
                         "it can be mapped");
  }
  bytes->owner = std::shared_ptr<const unsigned char[]>(memory);
  bytes->data = memory;
  bytes->size = size;
  *writable = memory;
  return {};
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result;
  for (const char c : text.substr(0, kLongest)) result += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kLongest) result += "...";
  return result;
}

std::string in_quotes(std::string_view text) { return std::string("'").append(printable(text)).append("'"); }

std::string system_message(int error_number) { return std::generic_category().message(error_number); }

}  // namespace attn::formats

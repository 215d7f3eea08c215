// Small files, read and written whole.
#include "explain/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace attn::explain {
namespace {

constexpr int kMostAttempts = 100;

Status failure(const std::string& path, const std::string& what) {
  return Status::error(path + ": " + what + ": " + std::strerror(errno));
}

// Of a file that can't be made: the reason, and what to do where its directory is absent.
Status failure_to_write(const std::string& path) {
  const int reason = errno;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (reason == ENOENT && !directory.empty()) {
    return Status::error(path + ": there is no directory " + directory + "; make it first, or write elsewhere");
  }
  errno = reason;
  return failure(path, "can't be written");
}

// A file of its own beside `path`; −1 where none can be made.
int open_beside(const std::string& path, std::string* name) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    *name = path + ".part" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    const int file = ::open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

bool write_all(int file, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = ::write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

Status read_file(const std::string& path, std::size_t most_bytes, std::string* text) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return Status::error(path + ": there is no such file; check the path");
  if (file < 0) return failure(path, "can't be read");
  std::string content(most_bytes + 1, '\0');
  std::size_t size = 0;
  ssize_t count = 1;
  while (size < content.size() && count > 0) {
    count = ::read(file, content.data() + size, content.size() - size);
    if (count > 0) size += static_cast<std::size_t>(count);
  }
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (count < 0) return failure(path, "can't be read");
  if (size > most_bytes) {
    return Status::error(path + ": larger than " + std::to_string(most_bytes) + " bytes, more than is read here");
  }
  content.resize(size);
  *text = std::move(content);
  return {};
}

Status write_file(const std::string& path, const std::string& text) {
  struct stat existing {};
  if (::stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    const std::string what = S_ISDIR(existing.st_mode) ? "a directory" : "not a file that can be replaced";
    return Status::error(path + ": " + what + "; give a file's name");
  }
  std::string part;
  const int file = open_beside(path, &part);
  if (file < 0) return failure_to_write(path);
  const bool written = write_all(file, text);
  const bool closed = ::close(file) == 0;
  if (written && closed && std::rename(part.c_str(), path.c_str()) == 0) return {};
  const int reason = errno;
  ::unlink(part.c_str());
  errno = reason;
  return failure(path, "can't be written");
}

}  // namespace attn::explain

#include "src/cache/checked_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <zlib.h>

#include "src/sentence.h"

namespace attn {
namespace {

std::string message_of(int error_number) { return std::generic_category().message(error_number); }

// zlib counts in 32 bits.
std::uint32_t checksum_of(std::uint32_t checksum, const void* bytes, std::size_t count) {
  return static_cast<std::uint32_t>(crc32_z(checksum, static_cast<const Bytef*>(bytes), count));
}

}  // namespace

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

CheckedWriter::~CheckedWriter() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

// What is no plain file, a link among them, is not to be replaced.
Status CheckedWriter::check_path() const {
  if (path_.empty() || path_.find('\0') != std::string::npos)
    return error("path: \"", path_.c_str(), "\" names no file; give one to write");
  struct stat facts {};
  if (lstat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return error(path_, ": is no plain file that can be replaced; give another path");
  return {};
}

Status CheckedWriter::open() {
  ATTN_RETURN_IF_ERROR(check_path());
  static std::atomic<unsigned> counter{0};
  const auto directory = std::filesystem::path(path_).parent_path();
  int descriptor = -1;
  do {
    const std::string name = ".attn-" + std::to_string(getpid()) + "-cache-" + std::to_string(counter++) + ".tmp";
    temporary_ = (directory / name).string();
    descriptor = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  if (descriptor < 0) {
    const std::string why = message_of(errno);
    temporary_.clear();
    return error(path_, ": no file can be made in its directory: ", why, "; make it, or write elsewhere");
  }
  file_.reset(descriptor);
  return {};
}

void CheckedWriter::write(const void* bytes, std::size_t count) {
  constexpr std::size_t kBuffer = std::size_t{1} << 20;
  checksum_ = checksum_of(checksum_, bytes, count);
  const auto* from = static_cast<const std::byte*>(bytes);
  buffer_.insert(buffer_.end(), from, from + count);
  if (buffer_.size() >= kBuffer) flush();
}

void CheckedWriter::flush() {
  for (std::size_t done = 0; done < buffer_.size() && error_number_ == 0;) {
    const ssize_t written = ::write(file_.number(), buffer_.data() + done, buffer_.size() - done);
    if (written > 0) done += static_cast<std::size_t>(written);
    if (written < 0 && errno != EINTR) error_number_ = errno;
  }
  buffer_.clear();
}

Status CheckedWriter::finish() {
  const std::uint32_t checksum = checksum_;
  write(&checksum, sizeof checksum);
  flush();
  if (error_number_ == 0 && fsync(file_.number()) != 0) error_number_ = errno;
  file_.close();
  if (error_number_ == 0 && std::rename(temporary_.c_str(), path_.c_str()) != 0) error_number_ = errno;
  if (error_number_ != 0)
    return error(path_, ": can't be written: ", message_of(error_number_), "; make room, or write elsewhere");
  temporary_.clear();
  return {};
}

Status CheckedReader::open() {
  if (path_.find('\0') != std::string::npos)
    return error(path_.c_str(), ": has a zero byte in its name; give another path");
  // Without waiting for whoever might write to a pipe: it is refused below.
  file_.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (file_.number() < 0 || fstat(file_.number(), &facts) != 0)
    return error(path_, ": can't be read: ", message_of(errno), "; check the path");
  if (!S_ISREG(facts.st_mode)) return error(path_, ": is no file; give one that save() wrote");
  remaining_ = std::max<std::int64_t>(0, facts.st_size - static_cast<std::int64_t>(sizeof checksum_));
  return {};
}

void CheckedReader::read(void* bytes, std::size_t count) {
  too_short_ = too_short_ || static_cast<std::int64_t>(count) > remaining_ || !read_bytes(bytes, count);
  if (too_short_) return;
  remaining_ -= static_cast<std::int64_t>(count);
  checksum_ = checksum_of(checksum_, bytes, count);
}

bool CheckedReader::expect(std::int64_t bytes) {
  too_short_ = too_short_ || bytes > remaining_;
  return !too_short_;
}

bool CheckedReader::read_bytes(void* bytes, std::size_t count) {
  auto* to = static_cast<std::byte*>(bytes);
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::read(file_.number(), to + done, count - done);
    if (got == 0 || (got < 0 && errno != EINTR)) return false;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return true;
}

std::int64_t CheckedReader::read_number() {
  std::int64_t number = 0;
  read(&number, sizeof number);
  return number;
}

std::int64_t CheckedReader::read_count(std::int64_t bytes_each) {
  const std::int64_t count = read_number();
  if (count >= 0 && count <= remaining_ / bytes_each) return count;
  too_short_ = true;
  return 0;
}

Status CheckedReader::finish() {
  if (too_short_) return refuse("was cut short, or claims more than it holds");
  if (remaining_ != 0) return refuse("has bytes behind its end");
  std::uint32_t checksum = 0;
  if (!read_bytes(&checksum, sizeof checksum) || checksum != checksum_)
    return refuse("has another checksum than its bytes: it was changed or damaged");
  return {};
}

Status CheckedReader::refuse(const std::string& what) const {
  return error(path_, ": ", what, "; give a file that KvCache::save() wrote");
}

}  // namespace attn

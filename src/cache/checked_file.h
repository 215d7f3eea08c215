// Files of numbers and bytes with a checksum at their end, which appear under their name only once they are whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attn/status.h"

namespace attn {

/// An open file of the system's.
class Descriptor {
 public:
  Descriptor() = default;
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void reset(int number) {
    close();
    number_ = number;
  }
  void close();
  int number() const { return number_; }

 private:
  int number_ = -1;
};

/// Writes beside `path`; finish() renames. Without finish() nothing is left.
class CheckedWriter {
 public:
  explicit CheckedWriter(std::string path) : path_(std::move(path)) {}
  ~CheckedWriter();
  CheckedWriter(const CheckedWriter&) = delete;
  CheckedWriter& operator=(const CheckedWriter&) = delete;

  Status open();
  void write(const void* bytes, std::size_t count);
  void write_number(std::int64_t number) { write(&number, sizeof number); }

  /// Checksum, disk, name: reports whatever failed since open().
  Status finish();

 private:
  Status check_path() const;
  void flush();

  std::string path_, temporary_;
  Descriptor file_;
  std::vector<std::byte> buffer_;
  std::uint32_t checksum_ = 0;
  int error_number_ = 0;
};

/// Reads what CheckedWriter wrote. After the first failure numbers read as 0 and other bytes stay as they were, and finish()
/// says what it was.
class CheckedReader {
 public:
  explicit CheckedReader(std::string path) : path_(std::move(path)) {}

  Status open();
  void read(void* bytes, std::size_t count);
  std::int64_t read_number();

  /// A count of things of which each takes at least `bytes_each` in the file: no more than can still come.
  std::int64_t read_count(std::int64_t bytes_each);

  /// Whether so many bytes can still come; if not, the file is too short.
  bool expect(std::int64_t bytes);

  /// False once the file was too short.
  bool ok() const { return !too_short_; }
  std::int64_t remaining() const { return remaining_; }

  /// The checksum must follow, and nothing behind it.
  Status finish();
  Status refuse(const std::string& what) const;

 private:
  bool read_bytes(void* bytes, std::size_t count);

  std::string path_;
  Descriptor file_;
  std::uint32_t checksum_ = 0;
  std::int64_t remaining_ = 0;  // bytes before the checksum
  bool too_short_ = false;
};

}  // namespace attn

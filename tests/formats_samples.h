// Tensor files as byte strings, right and wrong, and a directory to put them in.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/read.h"

namespace attn::formats {

template <class Number>
std::string bytes_of(Number number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  std::string bytes;
  for (const Number number : numbers) bytes += bytes_of(number);
  return bytes;
}

inline std::string reversed(std::string bytes) { return std::string(bytes.rbegin(), bytes.rend()); }

/// A directory that is gone with the test.
class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "attn-formats-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }

  /// Writes a file anew and returns its path.
  std::string file(const std::string& name, const std::string& bytes) const {
    // Some file systems wait for the disk when a file is cut and rewritten, but not for a new one.
    std::filesystem::remove(path(name));
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

  std::string contents(const std::string& name) const {
    std::ifstream stream(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  std::filesystem::path path_;
};

/// An .npy file of version 1, 2 or 3.
inline std::string npy(const std::string& dict, const std::string& elements, int version = 1) {
  std::string file = "\x93NUMPY" + std::string{static_cast<char>(version), '\0'};
  const std::string header = dict + "\n";
  file += version == 1 ? bytes_of(static_cast<std::uint16_t>(header.size()))
                       : bytes_of(static_cast<std::uint32_t>(header.size()));
  return file + header + elements;
}

inline std::string npy_dict(const std::string& descr, const std::string& shape, bool fortran_order = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

/// f32 elements 1, 2, 3 of shape (3,).
inline std::string small_npy() { return npy(npy_dict("<f4", "(3,)"), bytes_of(std::vector<float>{1, 2, 3})); }

inline std::string safetensors(const std::string& header, const std::string& elements) {
  return bytes_of(static_cast<std::uint64_t>(header.size())) + header + elements;
}

/// A zip archive under construction; every field can be told to lie.
struct Zip {
  struct Member {
    std::string name;
    std::string contents;
    bool deflate = false;
    bool zip64 = false;
    std::uint16_t flags = 0;
    std::uint16_t method = 0;  // set by finish() where deflate is
    std::uint32_t crc_error = 0;
    std::int64_t size_error = 0;
    std::int64_t stored_size_error = 0;
    std::int64_t offset_error = 0;
    std::string name_before_data{};  // where not the same
  };
  std::vector<Member> members;
  bool zip64_end = false;
  std::int64_t count_error = 0;
  std::int64_t directory_offset_error = 0;
  std::string comment{};

  static std::string deflated(const std::string& contents) {
    z_stream stream{};
    if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
    std::string out(deflateBound(&stream, contents.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
    stream.avail_in = static_cast<uInt>(contents.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }

  std::string finish() const {
    std::string file;
    std::string directory;
    for (const Member& member : members) append(member, &file, &directory);
    const std::uint64_t offset = file.size() + directory_offset_error;
    const std::uint64_t count = members.size() + count_error;
    file += directory;
    if (zip64_end) {
      const std::uint64_t end64 = file.size();
      file += "PK\x06\x06" + bytes_of<std::uint64_t>(44) + bytes_of<std::uint32_t>(45 << 16 | 45) +
              bytes_of<std::uint64_t>(0) + bytes_of(count) + bytes_of(count) +
              bytes_of<std::uint64_t>(directory.size()) + bytes_of(offset);
      file += "PK\x06\x07" + bytes_of<std::uint32_t>(0) + bytes_of(end64) + bytes_of<std::uint32_t>(1);
    }
    const auto count16 = static_cast<std::uint16_t>(zip64_end ? 0xFFFF : count);
    return file + "PK\x05\x06" + bytes_of<std::uint32_t>(0) + bytes_of(count16) + bytes_of(count16) +
           bytes_of(static_cast<std::uint32_t>(zip64_end ? 0xFFFFFFFF : directory.size())) +
           bytes_of(static_cast<std::uint32_t>(zip64_end ? 0xFFFFFFFF : offset)) +
           bytes_of(static_cast<std::uint16_t>(comment.size())) + comment;
  }

 private:
  static void append(const Member& member, std::string* file, std::string* directory) {
    const std::string stored = member.deflate ? deflated(member.contents) : member.contents;
    const auto* contents = reinterpret_cast<const Bytef*>(member.contents.data());
    const auto crc = static_cast<std::uint32_t>(crc32_z(0, contents, member.contents.size())) ^ member.crc_error;
    const std::uint64_t size = member.contents.size() + member.size_error;
    const std::uint64_t stored_size = stored.size() + member.stored_size_error;
    const std::uint64_t offset = file->size() + member.offset_error;
    const auto method = static_cast<std::uint16_t>(member.deflate ? 8 : member.method);
    const auto fit = [&](std::uint64_t n) { return bytes_of(static_cast<std::uint32_t>(member.zip64 ? ~0U : n)); };
    const auto common = [&](const std::string& name, std::uint16_t extra) {
      return bytes_of<std::uint16_t>(20) + bytes_of(member.flags) + bytes_of(method) + bytes_of<std::uint32_t>(0) +
             bytes_of(crc) + fit(stored_size) + fit(size) + bytes_of(static_cast<std::uint16_t>(name.size())) +
             bytes_of(member.zip64 ? extra : std::uint16_t{0});
    };
    const std::string sizes = bytes_of(size) + bytes_of(stored_size);
    const std::string& before = member.name_before_data.empty() ? member.name : member.name_before_data;
    *file += "PK\x03\x04" + common(before, 20) + before;
    if (member.zip64) *file += bytes_of<std::uint16_t>(1) + bytes_of<std::uint16_t>(16) + sizes;
    *file += stored;
    *directory += "PK\x01\x02" + bytes_of<std::uint16_t>(20) + common(member.name, 28) +
                  bytes_of<std::uint64_t>(0) + bytes_of<std::uint16_t>(0) + fit(offset) + member.name;
    if (member.zip64)
      *directory += bytes_of<std::uint16_t>(1) + bytes_of<std::uint16_t>(24) + sizes + bytes_of(offset);
  }
};

/// The elements in the order of their indices, last dimension fastest, whatever the strides; as bytes.
inline std::string elements_of(const Tensor& tensor) {
  std::string bytes;
  const std::size_t size = size_of(tensor.type);
  const std::size_t rank = tensor.shape.size();
  for (const std::int64_t n : tensor.shape) {
    if (n == 0) return bytes;
  }
  for (std::vector<std::int64_t> index(rank, 0);;) {
    const std::int64_t offset =
        std::inner_product(index.begin(), index.end(), tensor.strides.begin(), std::int64_t{0});
    bytes.append(static_cast<const char*>(tensor.data) + offset * static_cast<std::int64_t>(size), size);
    std::size_t d = rank;
    while (d > 0 && ++index[d - 1] == tensor.shape[d - 1]) index[--d] = 0;
    if (d == 0) return bytes;
  }
}

/// Reads what must be readable.
inline Tensor read(const std::string& argument) {
  Tensor tensor;
  const Status status = read_tensor(argument, &tensor);
  EXPECT_TRUE(status.ok()) << status.message();
  return tensor;
}

/// The error for what must not be; empty (and a failure) where it was read all the same.
inline std::string error_of(const std::string& argument) {
  Tensor tensor;
  const Status status = read_tensor(argument, &tensor);
  EXPECT_FALSE(status.ok()) << argument << " was read, with shape " << shape_text(tensor.shape);
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  return status.message();
}

/// A malformed file and a part of the sentence that refuses it.
struct Malformed {
  std::string bytes;
  std::string expected;
};

inline void expect_refused(const std::string& name, const std::vector<Malformed>& files,
                           const std::string& member = "") {
  const Directory directory;
  for (const Malformed& file : files) {
    const std::string path = directory.file(name, file.bytes);
    const std::string message = error_of(path + member);
    EXPECT_EQ(message.rfind(path, 0), 0U) << message;
    EXPECT_NE(message.find(file.expected), std::string::npos) << message << "\n  should say: " << file.expected;
  }
}

}  // namespace attn::formats

// Writing a tensor: whole, or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "attn/status.h"
#include "attn/tensor.h"

namespace attn::formats {

/// A file that comes into being: mapped at its full size under a temporary name beside its target, filled by the
/// caller through view(), and given its own name by commit(). Without commit() nothing remains of it and the
/// target is as it was. So a table as large as the disk needs no second copy in memory.
class OutputFile {
 public:
  OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  /// The extension of `path` chooses the format: .npy, .npz or .safetensors; in the last two the tensor is called
  /// `name`. The path "-" is an .npy file on standard output, held in memory until commit(). The disk space is
  /// reserved here. Errors: another extension; bf16 outside .safetensors; a shape with a negative size or with
  /// more than 2^63 − 1 bytes; a target that is a directory or a device; a directory that can't be written to;
  /// not enough space.
  static Status create(const std::string& path, DType dtype, std::span<const std::int64_t> shape, OutputFile* file,
                       std::string_view name = "out");

  /// The elements, row-major, all zero bytes at first; valid until commit().
  const OutputView& view() const { return view_; }

  /// Gives the file its name, replacing what had it before (or writes to standard output), and leaves this object
  /// as if new. Errors: nothing was created; the file system refuses, and the temporary file is removed.
  Status commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
  OutputView view_;
};

/// The bytes of a .safetensors file of small row-major tensors, in the order given; each has its name.
std::string as_safetensors(std::span<const std::pair<std::string, TensorView>> tensors);

/// Writes the elements of a view, whatever its strides, in row-major order. As OutputFile: create, fill, commit.
Status write_tensor(const std::string& path, const TensorView& tensor, std::string_view name = "out");

}  // namespace attn::formats

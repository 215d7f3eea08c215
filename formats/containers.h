// The kinds of file that hold tensors by name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "attn/status.h"
#include "formats/bytes.h"
#include "formats/tensor.h"

namespace attn::formats {

/// A member of an .npz file: a zip archive of .npy files, stored or deflated. Stored little-endian elements stay
/// where they are. `path` is what errors call the file; `name` may be absent where there is one tensor.
Status read_npz(const std::string& path, const Bytes& file, const std::optional<std::string>& name, Tensor* tensor);

/// A tensor of a .safetensors file: a JSON header, then the elements of all tensors without gaps. As read_npz.
Status read_safetensors(const std::string& path, const Bytes& file, const std::optional<std::string>& name,
                        Tensor* tensor);

/// Which of `names` is meant. Errors: none of that name; no name given and not exactly one there. They list what
/// is there, ten names at most.
Status choose_name(const std::string& path, const std::vector<std::string>& names,
                   const std::optional<std::string>& wanted, std::size_t* index);

}  // namespace attn::formats

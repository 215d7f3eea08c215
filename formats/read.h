// Reading a tensor, whatever kind of file holds it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "attn/status.h"
#include "formats/tensor.h"

namespace attn::formats {

/// Reads `FILE` or `FILE:NAME`: an .npy file, the member NAME (with or without ".npy") of an .npz file, or the
/// tensor NAME of a .safetensors file. A container that holds exactly one tensor needs no name. The kind is told
/// by content, not by extension. Where a file exists whose own name contains ':', the longest such name wins.
///
/// The file is mapped, not copied, but for deflated or big-endian data. Errors, in one sentence that names the
/// file: it is missing, unreadable, not a regular file or empty; it is no valid file of its kind down to the last
/// byte; it holds no tensor of that name; its element type or rank is not one that Tensor has. `tensor` is then
/// left as it was.
Status read_tensor(std::string_view argument, Tensor* tensor);

/// All tensors of a .safetensors file by name. Errors: as read_tensor(); a tensor of a type that Tensor does not have.
Status read_safetensors(const std::string& path, std::map<std::string, Tensor, std::less<>>* tensors);

}  // namespace attn::formats

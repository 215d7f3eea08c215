// From an argument to a file, from its first bytes to its kind, from a name to a tensor.
#include "formats/read.h"

#include <sys/stat.h>

#include <optional>
#include <string>

#include "formats/bytes.h"
#include "formats/containers.h"
#include "formats/npy.h"

namespace attn::formats {
namespace {

enum class Kind { npy, npz, safetensors, gguf, unknown };

struct Location {
  std::string path;
  std::optional<std::string> name;
};

bool exists(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0;
}

// The longest part before a ':' that is a file; the whole argument, if it is one, has no name after it.
Location locate(const std::string& argument) {
  if (exists(argument)) return {argument, std::nullopt};
  for (std::size_t colon = argument.rfind(':'); colon != std::string::npos && colon > 0;
       colon = argument.rfind(':', colon - 1)) {
    if (exists(argument.substr(0, colon))) return {argument.substr(0, colon), argument.substr(colon + 1)};
  }
  return {argument, std::nullopt};
}

Kind kind_of(const std::string& path, const Bytes& file) {
  const std::string_view text = file.text();
  // What the extension promises is said in the error, even if the first bytes are gone.
  if (text.starts_with(kNpyMagic)) return Kind::npy;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Kind::npz;
  if (text.starts_with("GGUF")) return Kind::gguf;
  if (text.size() > 8 && text[8] == '{') return Kind::safetensors;
  if (path.ends_with(".npy")) return Kind::npy;
  if (path.ends_with(".npz")) return Kind::npz;
  if (path.ends_with(".safetensors")) return Kind::safetensors;
  return Kind::unknown;
}

}  // namespace

Status choose_name(const std::string& path, const std::vector<std::string>& names,
                   const std::optional<std::string>& wanted, std::size_t* index) {
  constexpr std::size_t kListed = 10;
  if (names.empty()) return Status::error(path + ": holds no tensor; save at least one in it");
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (wanted ? names[i] == *wanted : names.size() == 1) {
      *index = i;
      return {};
    }
  }
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kListed; ++i) list += (i > 0 ? ", " : "") + printable(names[i]);
  if (names.size() > kListed) list += " and " + std::to_string(names.size() - kListed) + " more";
  if (wanted) {
    return Status::error(path + ": holds no tensor called " + in_quotes(*wanted) + "; it holds " + list);
  }
  return Status::error(path + ": holds " + std::to_string(names.size()) + " tensors, so say which as " + path +
                       ":NAME; it holds " + list);
}

Status read_tensor(std::string_view argument, Tensor* tensor) {
  if (argument.empty() || argument.find('\0') != std::string_view::npos) {
    return Status::error("the name of a tensor file is " + in_quotes(argument) + "; give FILE or FILE:NAME");
  }
  const auto [path, name] = locate(std::string(argument));
  Bytes file;
  ATTN_RETURN_IF_ERROR(map_file(path, &file));
  switch (kind_of(path, file)) {
    case Kind::npy:
      if (!name) return read_npy(path, file, tensor);
      return Status::error(path + ": is an .npy file, whose one tensor has no name; give " + path + " without " +
                           in_quotes(":" + *name));
    case Kind::npz: return read_npz(path, file, name, tensor);
    case Kind::safetensors: return read_safetensors(path, file, name, tensor);
    case Kind::gguf:
      return Status::error(path +
                           ": is a GGUF model, which is not available in this version as a tensor file; "
                           "give an .npy, .npz or .safetensors file");
    case Kind::unknown: break;
  }
  return Status::error(path +
                       ": is neither an .npy nor an .npz nor a .safetensors file, by its first bytes; "
                       "save the tensor as one of these");
}

}  // namespace attn::formats

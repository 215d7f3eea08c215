// The JSON header of a .safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attn/status.h"

namespace attn::formats {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< data_offsets: from the end of the header on
  std::uint64_t end = 0;
};

/// Parses `{"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …, "__metadata__": {"key":
/// "text"}}`. Nothing else may be there, nothing twice, and nothing may be missing. What the values mean together
/// is not looked at. Errors name `source`. Memory is in proportion to the text.
Status parse_safetensors_header(const std::string& source, std::string_view text,
                                std::vector<SafetensorsEntry>* entries);

}  // namespace attn::formats

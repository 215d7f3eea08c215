// Error sentences from their pieces.
#pragma once

#include <span>
#include <sstream>
#include <string>

#include "attn/status.h"

namespace attn {

/// An error whose sentence is the pieces, one after the other.
template <class... Pieces>
Status error(const Pieces&... pieces) {
  std::ostringstream sentence;
  (sentence << ... << pieces);
  return Status::error(sentence.str());
}

/// "[2, 8, 128, 64]"
inline std::string list_of(std::span<const std::int64_t> sizes) {
  std::ostringstream text;
  text << '[';
  for (std::size_t i = 0; i < sizes.size(); ++i) text << (i ? ", " : "") << sizes[i];
  text << ']';
  return text.str();
}

}  // namespace attn

// The version of the library.
#pragma once

namespace attn {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace attn

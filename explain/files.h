// Small files, read and written whole.
#pragma once

#include <cstddef>
#include <string>

#include "attn/status.h"

namespace attn::explain {

/// Reads a file of at most `most_bytes`; no more is ever held. Errors: it can't be read, it is larger.
Status read_file(const std::string& path, std::size_t most_bytes, std::string* text);

/// Writes the file beside its place under another name and then moves it there: what was there stays as it was
/// until all is written. Errors: the place is a directory or a device; it can't be written.
Status write_file(const std::string& path, const std::string& text);

}  // namespace attn::explain

// Columns of characters, for the formats that are read in a fixed-width font.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "explain/document.h"

namespace attn::explain {

/// How many characters a UTF-8 text shows (code points; wide and combining ones count as one).
std::size_t width_of(const std::string& text);

/// The text with blanks behind it, so that it is `width` characters wide; a wider one is left as it is.
std::string padded(const std::string& text, std::size_t width);

/// The lines of calculations: labels in a column of their own, as wide as the widest.
std::vector<std::string> lines_of(const Calculations& calculations);

/// A table's cells with blanks in front and behind, so that the numbers of a column align at the decimal point.
/// Each column comes out equally wide, its name included.
Table aligned(Table table);

}  // namespace attn::explain

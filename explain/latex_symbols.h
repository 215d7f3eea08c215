// The characters of a lesson in LaTeX.
#pragma once

#include <string>

namespace attn::explain {

/// Running text: special characters are escaped, mathematical ones go into math mode. Characters that are
/// neither, of other scripts say, are left to the user's engine and fonts.
std::string latex_text(const std::string& text);

/// A calculation, for use inside math mode: operators, roots, powers, functions; other words as upright text.
std::string latex_math(const std::string& math);

}  // namespace attn::explain

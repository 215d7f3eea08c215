// A document in the formats that people read.
#pragma once

#include <string>

#include "explain/document.h"

namespace attn::explain {

/// Plain text for a terminal, in UTF-8: paragraphs wrapped at 100 columns, tables aligned at the decimal point.
std::string as_text(const Document& document);

/// Markdown with tables (GitHub's dialect).
std::string as_markdown(const Document& document);

/// A LaTeX document that needs amsmath alone.
std::string as_latex(const Document& document);

}  // namespace attn::explain

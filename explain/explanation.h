// A worked problem in any of the formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/diagnose.h"
#include "explain/document.h"
#include "reference/trace.h"

namespace attn::explain {

enum class Format : std::uint8_t { text, markdown, latex, json };

/// "text", "markdown", "latex" or "json"; nothing for other names.
std::optional<Format> format_named(std::string_view name);

/// A document in one of the formats that people read.
std::string rendered(const Document& document, Format format);

/// The lesson about `trace`, which is that of `problem`; or, with a mistake, what it does to this problem. `remarks` are told
/// at the beginning of a lesson.
std::string explanation(Format format, const reference::Problem& problem, const reference::Trace& trace,
                        const Mistake* mistake = nullptr, const std::vector<std::string>& remarks = {});

}  // namespace attn::explain

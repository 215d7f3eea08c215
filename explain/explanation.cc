#include "explain/explanation.h"

#include <array>
#include <utility>

#include "explain/json.h"
#include "explain/lesson.h"
#include "explain/mistake_lesson.h"
#include "explain/render.h"

namespace attn::explain {

std::optional<Format> format_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Format>, 4> kFormats = {
      {{"text", Format::text}, {"markdown", Format::markdown}, {"latex", Format::latex}, {"json", Format::json}}};
  for (const auto& [known, format] : kFormats) {
    if (name == known) return format;
  }
  return std::nullopt;
}

std::string rendered(const Document& document, Format format) {
  if (format == Format::markdown) return as_markdown(document);
  if (format == Format::latex) return as_latex(document);
  return as_text(document);
}

std::string explanation(Format format, const reference::Problem& problem, const reference::Trace& trace,
                        const Mistake* mistake, const std::vector<std::string>& remarks) {
  if (format == Format::json) return mistake ? as_json(problem, trace, *mistake) : as_json(trace);
  return rendered(mistake ? mistake_lesson(*mistake, problem, trace) : lesson(problem, trace, remarks), format);
}

}  // namespace attn::explain

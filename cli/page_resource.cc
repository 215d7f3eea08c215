#include "cli/page_resource.h"

#include <nlohmann/json.hpp>

#include "cli/verbs.h"

#ifdef ATTN_PAGE_FILE
// The assembler takes the file as it is; a compiler would need minutes for an array of that size.
asm(".pushsection .rodata\n"
    "attn_page_begin: .incbin \"" ATTN_PAGE_FILE
    "\"\n"
    "attn_page_end: .byte 0\n"
    ".popsection\n");
extern "C" const char attn_page_begin[], attn_page_end[];
#endif

namespace attn::cli {
namespace {

constexpr std::string_view kPlace = R"(<script id="given" type="application/json">null</script>)";
constexpr std::string_view kNull = "null";

// JSON that no text within it can end the script of: "<" stands in JSON's texts alone, where it may be written so.
std::string for_script(const nlohmann::json& given) {
  std::string text;
  for (const char c : given.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
    text += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return text;
}

}  // namespace

std::optional<std::string_view> page() {
#ifdef ATTN_PAGE_FILE
  return std::string_view(attn_page_begin, static_cast<std::size_t>(attn_page_end - attn_page_begin));
#else
  return std::nullopt;
#endif
}

std::string page_with(const nlohmann::json& given) {
  if (!page()) throw Failure{2, kNoPage};
  return page_with(*page(), given);
}

std::string page_with(std::string_view page, const nlohmann::json& given) {
  const std::size_t place = page.find(kPlace);
  if (place == std::string_view::npos || page.find(kPlace, place + 1) != std::string_view::npos) {
    throw Failure{2, "page: it does not have " + std::string(kPlace) +
                         " exactly once, which is where it finds what it is given"};
  }
  const std::size_t null = place + kPlace.find(kNull);
  std::string filled(page.substr(0, null));
  filled += for_script(given);
  filled += page.substr(null + kNull.size());
  return filled;
}

}  // namespace attn::cli

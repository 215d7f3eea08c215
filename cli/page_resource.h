// The page: one HTML file with everything in it, as far as this build has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace attn::cli {

/// Ends the sentence that refuses what needs the page.
inline constexpr const char* kNoPage = "this build has no page; ./run explore builds it";

/// The page; nothing where the program was built without (ATTN_BUILD_PAGE).
std::optional<std::string_view> page();

/// The page with what it is given: the JSON takes the place of null in its only
///   <script id="given" type="application/json">null</script>
/// Throws Failure{2} where this build has no page.
std::string page_with(const nlohmann::json& given);

/// The same with another page. Throws Failure{2} where it does not have that place exactly once.
std::string page_with(std::string_view page, const nlohmann::json& given);

}  // namespace attn::cli

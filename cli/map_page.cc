#include "cli/map_page.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verbs.h"
#include "explain/json_number.h"

namespace attn::cli {
namespace {

constexpr double kMostBytes = 16e6;

// RFC 4648.
std::string base64(const std::string& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t n = 0; n < 3; ++n)
      three = three << 8 | (i + n < bytes.size() ? static_cast<unsigned char>(bytes[i + n]) : 0);
    for (std::size_t n = 0; n < 4; ++n) text += i + n <= bytes.size() ? kDigits[three >> (18 - 6 * n) & 63] : '=';
  }
  return text;
}

// Square roots, so that small weights keep their order: the rounding of a weight w is at most √w/255.
char rounded(float weight) {
  return static_cast<char>(
      static_cast<unsigned char>(std::lround(255 * std::sqrt(std::clamp(weight, 0.0F, 1.0F)))));
}

void check_bytes(const explain::AttentionMap& map, std::size_t heads) {
  const double n = static_cast<double>(map.size());
  const double bytes = static_cast<double>(map.layers.size() * heads) * n * (map.causal ? (n + 1) / 2 : n) * 4 / 3;
  if (bytes <= kMostBytes) return;
  throw Failure{2, "-o: a page of " + std::to_string(static_cast<std::int64_t>(bytes / 1e6)) +
                       " MB is more than a browser reads with ease; choose --layer, and --head, or a shorter text"};
}

// The head that the page shows first: of those that are there, the one that looks most beyond habits.
explain::HeadRow first_shown(const explain::AttentionMap& map, std::optional<std::int64_t> head,
                             std::int64_t from) {
  for (const explain::HeadRow& row : explain::rank_heads(map, from)) {
    if (!head || row.head == *head) return row;
  }
  return {};
}

}  // namespace

nlohmann::json page_map(const explain::AttentionMap& map, std::optional<std::int64_t> head,
                        std::optional<std::int64_t> from) {
  std::vector<std::int64_t> heads;
  for (std::int64_t h = 0; h < map.heads; ++h) {
    if (!head || h == *head) heads.push_back(h);
  }
  check_bytes(map, heads.size());
  std::string bytes;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (const std::int64_t h : heads) {
      for (std::int64_t i = 0; i < map.size(); ++i) {
        for (const float weight :
             map.row(layer, h, i).first(static_cast<std::size_t>(map.causal ? i + 1 : map.size())))
          bytes += rounded(weight);
      }
    }
  }
  const std::int64_t shown_from = from.value_or(map.size() - 1);
  const explain::HeadRow shown = first_shown(map, head, shown_from);
  return {{"model", map.model},
          {"tokens", map.tokens},
          {"special", map.special},
          {"causal", map.causal},
          {"layers", map.layers},
          {"heads", heads},
          {"from", shown_from},
          {"layer", shown.layer_here},
          {"head", head ? 0 : shown.head},
          {"fidelity", explain::json_number(map.fidelity)},
          {"caveat", explain::kMapCaveat},
          {"weights", base64(bytes)}};
}

}  // namespace attn::cli

#include "cli/explore_api.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/explore_maps.h"
#include "cli/numbers.h"

namespace attn::cli {
namespace {

using nlohmann::json;

constexpr std::int64_t kLeastCells = 8, kMostCells = 64;
constexpr int kDeepest = 4;  // a body's texts nest no deeper

struct Route {
  std::string_view path, method;
  std::vector<std::string_view> parameters;
};

const std::vector<Route>& routes() {
  static const std::vector<Route> all = {{"/", "GET", {}},
                                         {"/api/map", "POST", {}},
                                         {"/api/thumbnails", "GET", {"id", "size"}},
                                         {"/api/weights", "GET", {"id", "layer", "head"}},
                                         {"/api/ranking", "GET", {"id", "from"}},
                                         {"/api/pair", "GET", {"id", "from", "to"}}};
  return all;
}

const Route* route_of(std::string_view path) {
  for (const Route& route : routes()) {
    if (route.path == path) return &route;
  }
  return nullptr;
}

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

ApiAnswer as_json(const json& value) { return {"application/json", text_of(value)}; }

ApiAnswer as_bytes(std::string bytes) { return {"application/octet-stream", std::move(bytes)}; }

// Each parameter that the path takes once, and no other.
void check_parameters(const Route& route, const Query& query) {
  std::string names;
  for (const std::string_view name : route.parameters) names += (names.empty() ? "" : ", ") + std::string(name);
  const std::string rule = names.empty() ? " takes no parameters" : " takes " + names + ", each of them once";
  for (const auto& [name, value] : query.parameters) {
    if (std::find(route.parameters.begin(), route.parameters.end(), name) == route.parameters.end())
      throw Refusal{400, "\"" + name + "\" is no parameter here; " + query.path + rule};
  }
  for (const std::string_view name : route.parameters) {
    const std::size_t count = query.parameters.count(std::string(name));
    if (count == 1) continue;
    throw Refusal{400, std::string(name) + ": " + (count == 0 ? "not given" : "given more than once") + "; " +
                           query.path + rule};
  }
}

std::int64_t index_of(const Query& query, const char* name, std::int64_t count) {
  return parse_whole(name, query.parameters.find(name)->second, 0, count - 1);
}

// The text of {"text": "…"}.
std::string text_in(const std::string& body) {
  const std::string form = "; send {\"text\": \"…\"}";
  bool is_deep = false;
  const json given = json::parse(
      body,
      [&](int depth, json::parse_event_t, const json&) {
        is_deep = is_deep || depth > kDeepest;
        return depth <= kDeepest;
      },
      false);
  if (given.is_discarded() || is_deep) throw Refusal{400, "body: not one JSON object in UTF-8" + form};
  if (!given.is_object()) throw Refusal{400, "body: JSON, but no object" + form};
  for (const auto& [key, value] : given.items()) {
    if (key != "text") throw Refusal{400, "body: \"" + key + "\" is no key here" + form};
  }
  if (!given.contains("text")) throw Refusal{400, "text: not given" + form};
  if (!given["text"].is_string()) throw Refusal{400, "text: not a text" + form};
  return given["text"].get<std::string>();
}

ApiAnswer from_map(const Query& query, const explain::AttentionMap& map) {
  const std::string& path = query.path;
  if (path == "/api/thumbnails") {
    const std::string& size = query.parameters.find("size")->second;
    return as_bytes(thumbnails(map, parse_whole("size", size, kLeastCells, kMostCells)));
  }
  if (path == "/api/weights") {
    const auto layers = static_cast<std::int64_t>(map.layers.size());
    const std::int64_t layer = index_of(query, "layer", layers);
    return as_bytes(head_weights(map, layer, index_of(query, "head", map.heads)));
  }
  const std::int64_t from = index_of(query, "from", map.size());
  if (path == "/api/ranking") return as_json(ranking(map, from));
  return as_json(pair_weights(map, from, index_of(query, "to", map.size())));
}

}  // namespace

std::string_view ExploreApi::method_of(std::string_view path) {
  const Route* route = route_of(path);
  return route == nullptr ? std::string_view() : route->method;
}

ApiAnswer ExploreApi::answer(const Query& query) const {
  const Route* route = route_of(query.path);
  if (route == nullptr) throw Refusal{404, "path: nothing is here; the page is at /"};
  if (query.path == "/") return {"text/html; charset=utf-8", page_()};
  if (maps_ == nullptr)
    throw Refusal{404, query.path + ": there is no model to map texts with; start attn explore with --model"};
  check_parameters(*route, query);
  if (query.path == "/api/map") return as_json(summary(*maps_->make(text_in(query.body), query.is_wanted)));
  const std::shared_ptr<const KeptMap> kept = maps_->find(query.parameters.find("id")->second);
  return from_map(query, kept->map);
}

std::string error_json(const std::string& sentence) { return text_of({{"error", sentence}}); }

}  // namespace attn::cli

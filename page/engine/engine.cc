// What the page calls: the project's own reference, trace and catalogue, in the browser. Texts in, JSON out.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/catalogue.h"
#include "diagnose/worked_mistake.h"
#include "explain/attention_map.h"
#include "explain/cost.h"
#include "explain/head_json.h"
#include "explain/json.h"
#include "explain/page_problem.h"
#include "explain/scaling.h"
#include "reference/reference.h"
#include "reference/trace.h"

#define ATTN_PAGE_CALL extern "C" __attribute__((used, visibility("default")))

namespace attn::page {
namespace {

using Json = nlohmann::ordered_json;

// The last answer; JavaScript copies it before it calls again.
const char* answer(std::string text) {
  static std::string kept;
  kept = std::move(text);
  return kept.c_str();
}

const char* refuse(const std::string& sentence) { return answer(Json{{"error", sentence}}.dump()); }

Status work(const char* json, explain::PageProblem* page, reference::Trace* trace) {
  ATTN_RETURN_IF_ERROR(explain::read_page_problem(json, page));
  return reference::trace(page->problem, trace);
}

// The map that the page shows, if it came with the page.
explain::AttentionMap& shown_map() {
  static explain::AttentionMap map;
  return map;
}

std::vector<std::uint8_t>& map_bytes() {
  static std::vector<std::uint8_t> bytes;
  return bytes;
}

// Weights as page_map() of the program rounds them.
float weight_of(std::uint8_t rounded) {
  const float root = static_cast<float>(rounded) / 255;
  return root * root;
}

Json json_of(const explain::SoftmaxAtWork& work) {
  return {{"scores", work.scores}, {"weights", work.weights}, {"gradient", work.gradient}};
}

}  // namespace
}  // namespace attn::page

using namespace attn;

/// The trace of a problem as `attn explain --json` gives it, with a mistake's numbers; or {"error": sentence}.
ATTN_PAGE_CALL const char* attn_page_work(const char* json) {
  explain::PageProblem given;
  reference::Trace trace;
  const Status status = page::work(json, &given, &trace);
  if (!status.ok()) return page::refuse(status.message());
  const Mistake* mistake = find_mistake(given.mistake);
  return page::answer(mistake ? explain::as_json(given.problem, trace, *mistake, {}) : explain::as_json(trace, {}));
}

/// The ids of the mistakes that change a number of this problem; none where it is no problem.
ATTN_PAGE_CALL const char* attn_page_shown_mistakes(const char* json) {
  page::Json ids = page::Json::array();
  explain::PageProblem given;
  reference::Trace trace;
  if (!page::work(json, &given, &trace).ok()) return page::answer(ids.dump());
  for (const Mistake& mistake : mistakes()) {
    if (diagnose::make_mistake(mistake, given.problem, trace)) ids.push_back(mistake.id);
  }
  return page::answer(ids.dump());
}

/// [{id, name, what, fix}] of the catalogue.
ATTN_PAGE_CALL const char* attn_page_mistakes() {
  page::Json list = page::Json::array();
  for (const Mistake& mistake : mistakes())
    list.push_back({{"id", mistake.id}, {"name", mistake.name}, {"what", mistake.what}, {"fix", mistake.fix}});
  return page::answer(list.dump());
}

/// Products of random vectors of this dimension, and what softmax makes of them with and without scaling.
ATTN_PAGE_CALL const char* attn_page_scaling(int dim, int keys, int seed) {
  const explain::Scaling scaling = explain::scaling_of(dim, keys, static_cast<std::uint32_t>(seed));
  return page::answer(page::Json{{"spread", scaling.spread},
                                 {"scaled_spread", scaling.scaled_spread},
                                 {"plain", page::json_of(scaling.plain)},
                                 {"scaled", page::json_of(scaling.scaled)}}
                          .dump());
}

/// The softmax of a JSON list of scores.
ATTN_PAGE_CALL const char* attn_page_softmax(const char* scores) {
  const page::Json list = page::Json::parse(scores, nullptr, false);
  std::vector<double> numbers;
  for (const page::Json& score : list) {
    if (!score.is_number()) return page::refuse("scores: not all are numbers");
    numbers.push_back(score.get<double>());
  }
  if (numbers.empty()) return page::refuse("scores: none; give some");
  return page::answer(page::json_of(explain::softmax_at_work(numbers)).dump());
}

/// Where the bytes of a map's weights go, `count` of them, before attn_page_map() is called.
ATTN_PAGE_CALL std::uint8_t* attn_page_map_memory(int count) {
  page::map_bytes().resize(static_cast<std::size_t>(count));
  return page::map_bytes().data();
}

/// Takes a map: `about` is {"tokens", "special", "causal", "layers", "heads"}. 0 where there are too few bytes.
ATTN_PAGE_CALL int attn_page_map(const char* about) {
  const page::Json json = page::Json::parse(about);
  explain::AttentionMap& map = page::shown_map();
  map = {};
  json.at("tokens").get_to(map.tokens);
  map.special = json.at("special").get<std::vector<bool>>();
  map.causal = json.at("causal").get<bool>();
  json.at("layers").get_to(map.layers);
  map.heads = static_cast<std::int64_t>(json.at("heads").size());
  const std::size_t n = map.tokens.size(), tables = map.layers.size() * static_cast<std::size_t>(map.heads);
  const std::vector<std::uint8_t>& bytes = page::map_bytes();
  if (bytes.size() != tables * (map.causal ? n * (n + 1) / 2 : n * n)) return 0;
  map.weights.assign(tables * n * n, 0);
  std::size_t next = 0;
  for (std::size_t row = 0; row < tables * n; ++row) {
    const std::size_t seen = map.causal ? row % n + 1 : n;
    for (std::size_t key = 0; key < seen; ++key) map.weights[row * n + key] = page::weight_of(bytes[next++]);
  }
  return 1;
}

/// The weights of the map, [layers][heads][tokens][tokens].
ATTN_PAGE_CALL const float* attn_page_map_weights() { return page::shown_map().weights.data(); }

/// [{layer, head, beyond, first, previous, itself}] for the row of a query; layer and head count those that are here.
ATTN_PAGE_CALL const char* attn_page_map_ranking(int from) {
  page::Json list = page::Json::array();
  for (const explain::HeadRow& row : explain::rank_heads(page::shown_map(), from)) {
    list.push_back(explain::head_json(row));
    list.back()["layer"] = row.layer_here;
  }
  return page::answer(list.dump());
}

/// What so many tokens take.
ATTN_PAGE_CALL const char* attn_page_cost(double tokens, double heads, double kv_heads, double head_dim,
                                          double layers, int causal) {
  const explain::Cost cost = explain::cost_of({.tokens = tokens,
                                               .heads = heads,
                                               .kv_heads = kv_heads,
                                               .head_dim = head_dim,
                                               .layers = layers,
                                               .cache_element_bytes = 2,
                                               .causal = causal != 0});
  return page::answer(page::Json{{"scores", cost.scores},
                                 {"flops", cost.flops},
                                 {"table_bytes", cost.table_bytes},
                                 {"tile_bytes", cost.tile_bytes},
                                 {"kv_cache_bytes", cost.kv_cache_bytes}}
                          .dump());
}

/// Attends over so many tokens of one head, in float64 and with the table stored: for the browser to time.
ATTN_PAGE_CALL double attn_page_attend(int tokens, int head_dim) {
  std::vector<double> numbers(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(head_dim));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>((i * 7919) % 1009) / 1009 - 0.5;
  const TensorView view(numbers.data(), DType::f64, {tokens, head_dim});
  return reference::attention(view, view, view).out.front();
}

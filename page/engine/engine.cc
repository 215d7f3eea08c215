// What the page calls: the project's own reference, trace and catalogue, in the browser. Texts in, JSON out.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/catalogue.h"
#include "diagnose/worked_mistake.h"
#include "explain/attention_map.h"
#include "explain/changes.h"
#include "explain/cost.h"
#include "explain/head_json.h"
#include "explain/json.h"
#include "explain/json_number.h"
#include "explain/scaling.h"
#include "explain/specification.h"
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

Status number_of(const std::string& name, const std::string& text, double* number) {
  char* end = nullptr;
  *number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(std::abs(*number) < 1e300))
    return Status::error(name + ": \"" + text + "\" is not a finite number");
  return {};
}

Status whole_of(const std::string& name, const std::string& text, std::int64_t least, std::int64_t* whole) {
  double number = 0;
  ATTN_RETURN_IF_ERROR(number_of(name, text, &number));
  if (number < static_cast<double>(least) || number > 1e6 ||
      number != static_cast<double>(static_cast<std::int64_t>(number)))
    return Status::error(name + ": " + text + " is no whole number from " + std::to_string(least) + " up");
  *whole = static_cast<std::int64_t>(number);
  return {};
}

// Options as a specification words them; those of the command line that the page has no switch for are refused by name.
Status read_options(const std::map<std::string, std::string>& words, reference::Problem* problem) {
  AttentionOptions& options = problem->options;
  for (const auto& [name, text] : words) {
    double number = 0;
    if (name == "causal") {
      options.causal = true;
      if (text != "true" && text != "top-left" && text != "bottom-right")
        return Status::error("causal: \"" + text + "\"; the page knows true alone");
    } else if (name == "scale") {
      ATTN_RETURN_IF_ERROR(number_of(name, text, &number));
      options.scale = number;
    } else if (name == "softcap") {
      ATTN_RETURN_IF_ERROR(number_of(name, text, &number));
      if (number <= 0) return Status::error("softcap: " + text + " is not above 0");
      options.softcap = number;
    } else if (name == "window") {
      std::int64_t left = 0;
      ATTN_RETURN_IF_ERROR(whole_of(name, text, 0, &left));
      options.window_left = left;
    } else if (name == "heads") {
      ATTN_RETURN_IF_ERROR(whole_of(name, text, 1, &problem->heads));
    } else if (name == "tiles") {
      ATTN_RETURN_IF_ERROR(whole_of(name, text, 1, &problem->tile));
    } else if (name == "cache") {
      problem->cache = true;
    } else {
      return Status::error(name + ": the page has no switch for it; attn explain has");
    }
  }
  return {};
}

// A specification with two more keys: "set", a list of changes as --set words them, and "mistake".
Status read(const std::string& text, reference::Problem* problem, std::string* mistake) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Status::error("specification: no JSON object");
  std::vector<std::string> changes;
  if (json.contains("set")) {
    for (const Json& change : json["set"]) {
      if (!change.is_string()) return Status::error("set: a change is a text, such as \"k[1]=2,0\"");
      changes.push_back(change.get<std::string>());
    }
  }
  if (json.contains("mistake") && json["mistake"].is_string()) *mistake = json["mistake"].get<std::string>();
  json.erase("set");
  json.erase("mistake");
  explain::Specification specification;
  ATTN_RETURN_IF_ERROR(explain::read_specification(json.dump(), &specification));
  *problem = std::move(specification.problem);
  problem->options = {};
  reference::Trace unused;
  ATTN_RETURN_IF_ERROR(reference::trace(*problem, &unused));
  ATTN_RETURN_IF_ERROR(explain::apply_changes(changes, problem));
  return read_options(specification.options, problem);
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

/// The trace of a specification as `attn explain --json` gives it, with a mistake's numbers; or {"error": sentence}.
ATTN_PAGE_CALL const char* attn_page_work(const char* specification) {
  reference::Problem problem;
  std::string mistake;
  Status status = page::read(specification, &problem, &mistake);
  const Mistake* entry = mistake.empty() ? nullptr : find_mistake(mistake);
  if (status.ok() && !mistake.empty() && !entry) status = Status::error("mistake: \"" + mistake + "\" is none");
  reference::Trace trace;
  if (status.ok()) status = reference::trace(problem, &trace);
  if (!status.ok()) return page::refuse(status.message());
  return page::answer(entry ? explain::as_json(problem, trace, *entry) : explain::as_json(trace));
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

#include "explain/page_problem.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "attn/diagnose.h"
#include "explain/specification.h"

namespace attn::explain {
namespace {

using Json = nlohmann::ordered_json;
using reference::Problem;

constexpr int kDeepest = 8;
constexpr std::int64_t kLargest = std::int64_t{1} << 53;  // the last whole number before JSON's numbers have gaps

constexpr std::array kOptions = {"causal", "offset", "scale", "softcap", "window",  "sink_tokens", "alibi",
                                 "length", "heads",  "tiles", "cache",   "mistake", "replaced"};

// Takes options from an object, each with its rule, and keeps the first fault.
class Options {
 public:
  explicit Options(Json json) : json_(std::move(json)) {}

  Status status() const { return status_; }

  bool flag(const char* key) {
    const Json value = take(key);
    if (!value.is_null() && !value.is_boolean()) fail(key, "true or nothing");
    return value.is_boolean() && value.get<bool>();
  }

  std::optional<double> number(const char* key) {
    const Json value = take(key);
    if (value.is_null()) return {};
    if (value.is_number() && std::isfinite(value.get<double>())) return value.get<double>();
    return fail(key, "a finite number");
  }

  std::optional<std::int64_t> whole(const char* key, std::int64_t least, std::int64_t most) {
    return whole_of(key, take(key), least, most);
  }

  std::string text(const char* key) {
    const Json value = take(key);
    if (!value.is_null() && !value.is_string()) fail(key, "a text");
    return value.is_string() ? value.get<std::string>() : "";
  }

  void window(AttentionOptions* options) {
    const Json value = take("window");
    if (value.is_null()) return;
    if (!value.is_array() || value.size() != 2) {
      fail("window", "[left, right], each a number of keys or null");
      return;
    }
    options->window_left = whole_of("window", value[0], 0, kLargest);
    options->window_right = whole_of("window", value[1], 0, kLargest);
  }

  void replaced(Problem* problem) {
    const Json value = take("replaced");
    if (!value.is_null() && !value.is_array()) fail("replaced", "a list");
    for (const Json& each : value) {
      reference::Replacement replacement;
      if (is_replacement(each)) {
        replacement.matrix = each["matrix"].get<std::string>().front();
        replacement.row = each["row"].get<std::int64_t>();
        each["values"].get_to(replacement.values);
        problem->replaced.push_back(std::move(replacement));
      } else {
        fail("replaced", R"(a list of rows such as {"matrix": "k", "row": 1, "values": [2, 0]})");
      }
    }
  }

 private:
  static bool is_replacement(const Json& json) {
    if (!json.is_object() || !json.contains("matrix") || !json.contains("row") || !json.contains("values"))
      return false;
    const Json &matrix = json["matrix"], &values = json["values"];
    bool numbers = values.is_array();
    if (numbers)
      for (const Json& value : values) numbers = numbers && value.is_number() && std::isfinite(value.get<double>());
    return numbers && json["row"].is_number_integer() && (matrix == "q" || matrix == "k" || matrix == "v");
  }

  Json take(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? Json() : *found;
  }

  std::optional<std::int64_t> whole_of(const char* key, const Json& value, std::int64_t least, std::int64_t most) {
    if (value.is_null()) return {};
    const double number = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (number >= static_cast<double>(least) && number <= static_cast<double>(most) && number == std::floor(number))
      return static_cast<std::int64_t>(number);
    fail(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return {};
  }

  std::nullopt_t fail(const std::string& key, const std::string& rule) {
    if (status_.ok()) status_ = Status::error(key + ": not " + rule + "; mend it, or leave it out");
    return std::nullopt;
  }

  Json json_;
  Status status_;
};

Status read_options(Options given, PageProblem* page) {
  Problem& problem = page->problem;
  AttentionOptions& options = problem.options;
  options.causal = given.flag("causal");
  if (const auto offset = given.whole("offset", -kLargest, kLargest)) {
    options.alignment = Alignment::offset;
    options.position_offset = *offset;
  }
  options.scale = given.number("scale");
  options.softcap = given.number("softcap");
  given.window(&options);
  options.sink_tokens = given.whole("sink_tokens", 0, kLargest).value_or(0);
  problem.heads = given.whole("heads", 1, kMostHeads).value_or(1);
  problem.tile = given.whole("tiles", 0, kLargest).value_or(0);
  problem.cache = given.flag("cache");
  page->mistake = given.text("mistake");
  if (!page->mistake.empty() && !find_mistake(page->mistake))
    return Status::error("mistake: \"" + page->mistake + "\" is none of the catalogue");
  if (const auto length = given.whole("length", 0, static_cast<std::int64_t>(problem.tokens.size()))) {
    page->lengths = {*length};
    options.key_lengths = page->lengths;
    options.alignment = Alignment::offset;
  }
  if (given.flag("alibi")) {
    page->slopes = alibi_slopes(static_cast<int>(problem.heads));
    options.alibi = TensorView(page->slopes.data(), DType::f32, {problem.heads});
  }
  given.replaced(&problem);
  if (options.softcap && *options.softcap <= 0) return Status::error("softcap: not above 0; leave it out for none");
  return given.status();
}

// Where the first query sits, counted from the first key.
std::int64_t offset_of(const Problem& problem) {
  const AttentionOptions& options = problem.options;
  if (options.alignment == Alignment::offset) return options.position_offset;
  const bool ends_together = options.alignment == Alignment::bottom_right && !options.key_lengths.empty();
  return ends_together ? options.key_lengths.front() - static_cast<std::int64_t>(problem.tokens.size()) : 0;
}

nlohmann::json side(const std::optional<std::int64_t>& keys) {
  return keys ? nlohmann::json(*keys) : nlohmann::json();
}

void write_matrices(const Problem& problem, nlohmann::json* json) {
  for (const auto& [name, matrix] :
       {std::pair("x", &problem.x), std::pair("wq", &problem.wq), std::pair("wk", &problem.wk),
        std::pair("wv", &problem.wv), std::pair("q", &problem.q), std::pair("k", &problem.k),
        std::pair("v", &problem.v)}) {
    if (!matrix->empty()) (*json)[name] = *matrix;
  }
  for (const reference::Replacement& each : problem.replaced) {
    const std::string matrix(1, each.matrix);
    if (json->contains(matrix)) {
      (*json)[matrix][static_cast<std::size_t>(each.row)] = each.values;
    } else {
      (*json)["replaced"].push_back({{"matrix", matrix}, {"row", each.row}, {"values", each.values}});
    }
  }
}

void write_options(const Problem& problem, nlohmann::json* json) {
  const AttentionOptions& options = problem.options;
  if (options.causal) (*json)["causal"] = true;
  if (const std::int64_t offset = offset_of(problem)) (*json)["offset"] = offset;
  if (options.scale) (*json)["scale"] = *options.scale;
  if (options.softcap) (*json)["softcap"] = *options.softcap;
  if (options.window_left || options.window_right)
    (*json)["window"] = {side(options.window_left), side(options.window_right)};
  if (options.sink_tokens > 0) (*json)["sink_tokens"] = options.sink_tokens;
  if (options.alibi) (*json)["alibi"] = true;
  if (!options.key_lengths.empty()) (*json)["length"] = options.key_lengths.front();
  if (problem.heads > 1) (*json)["heads"] = problem.heads;
  if (problem.tile > 0) (*json)["tiles"] = problem.tile;
  if (problem.cache) (*json)["cache"] = true;
}

}  // namespace

nlohmann::json page_problem_json(const Problem& problem, const std::string& mistake) {
  nlohmann::json json = {{"tokens", problem.tokens}};
  write_matrices(problem, &json);
  write_options(problem, &json);
  if (!mistake.empty()) json["mistake"] = mistake;
  return json;
}

Status read_page_problem(const std::string& text, PageProblem* page) {
  bool is_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    return !(is_deep = is_deep || depth > kDeepest);
  };
  Json json = Json::parse(text, watch, false), options = Json::object();
  if (is_deep) return Status::error("specification: nested too deeply; matrices are lists of lists of numbers");
  if (!json.is_object()) return Status::error("specification: no JSON object");
  for (const char* key : kOptions) {
    if (!json.contains(key)) continue;
    options[key] = std::move(json[key]);
    json.erase(key);
  }
  Specification specification;
  ATTN_RETURN_IF_ERROR(read_specification(json.dump(), &specification));
  if (!specification.options.empty())
    return Status::error("\"" + specification.options.begin()->first +
                         "\" is an option that the page does not have");
  page->problem = std::move(specification.problem);
  page->problem.options = {};
  return read_options(Options(std::move(options)), page);
}

}  // namespace attn::explain

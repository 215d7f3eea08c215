// Reading a specification: strict, so that a typing error never passes for an option that was not given.
#include "explain/specification.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "explain/example.h"

namespace attn::explain {
namespace {

using Json = nlohmann::json;
using reference::Matrix;

constexpr std::array<std::string_view, 4> kProjected = {"x", "wq", "wk", "wv"};
constexpr std::array<std::string_view, 3> kGiven = {"q", "k", "v"};
constexpr std::array<std::string_view, 13> kOptions = {"causal",      "align", "scale",   "mask",  "window",
                                                       "sink-tokens", "sinks", "softcap", "alibi", "lengths",
                                                       "heads",       "tiles", "cache"};
// An example may say what it is about and what to expect of it; this changes nothing.
constexpr std::array<std::string_view, 7> kCommentary = {"about",    "expect", "what_if", "saturation",
                                                         "variance", "cost",   "sentence"};
constexpr int kDeepest = 8;
constexpr std::size_t kLongestName = 64;

// What is quoted from a file stays a line to read.
std::string shortened(const std::string& text) {
  return text.size() <= kLongestName ? text : text.substr(0, kLongestName) + "...";
}

template <std::size_t count>
bool contains(const std::array<std::string_view, count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What the parser says, without its own name in front.
std::string sentence_of(const Json::exception& error) {
  const std::string text = error.what();
  const std::size_t bracket = text.find("] ");
  return "specification: " + (bracket == std::string::npos ? text : text.substr(bracket + 2));
}

// The object, or why there is none. The parser itself lets a repeated key replace the first one.
Status parse(const std::string& text, Json* json) {
  std::set<std::string> keys;
  std::string repeated;
  bool is_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key && depth == 1 && !keys.insert(value.get<std::string>()).second) {
      repeated = value.get<std::string>();
    }
    is_deep = is_deep || depth > kDeepest;
    return depth <= kDeepest;
  };
  try {
    *json = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    return Status::error(sentence_of(error));
  }
  if (is_deep) return Status::error("specification: nested too deeply; matrices are lists of lists of numbers");
  if (!json->is_object()) {
    return Status::error("specification: not a JSON object; write {\"tokens\": […], \"x\": [[…]], …}");
  }
  if (!repeated.empty()) return Status::error(shortened(repeated) + ": given twice; leave one out");
  return {};
}

Status check_keys(const Json& json) {
  for (const auto& [key, value] : json.items()) {
    if (key == "tokens" || contains(kProjected, key) || contains(kGiven, key) || contains(kOptions, key) ||
        contains(kCommentary, key)) {
      continue;
    }
    return Status::error("\"" + shortened(key) +
                         "\" is no key of a specification; it has tokens, x, wq, wk, wv (or q, k, v) and " +
                         "options by their flag's name, such as causal or scale");
  }
  const auto is_given = [&](std::string_view key) { return json.contains(key); };
  const bool has_projected = std::any_of(kProjected.begin(), kProjected.end(), is_given);
  const bool has_given = std::any_of(kGiven.begin(), kGiven.end(), is_given);
  if (has_projected && has_given) {
    return Status::error("specification: both x with its matrices and q, k, v are given; give one of the two");
  }
  for (const std::string_view key : kProjected) {
    if (!has_given && !is_given(key)) {
      return Status::error(std::string(key) + ": missing; give x, wq, wk and wv, or q, k and v");
    }
  }
  for (const std::string_view key : kGiven) {
    if (has_given && !is_given(key)) return Status::error(std::string(key) + ": missing; give q, k and v");
  }
  return {};
}

Status read_row(const Json& json, const std::string& where, std::vector<double>* row) {
  if (!json.is_array()) return Status::error(where + ": not a list; a row is a list of numbers");
  if (json.size() > kMostColumns) {
    return Status::error(where + ": " + std::to_string(json.size()) + " numbers; an example to read has at most " +
                         std::to_string(kMostColumns));
  }
  for (const Json& element : json) {
    if (!element.is_number()) return Status::error(where + ": " + shortened(element.dump()) + " is not a number");
    row->push_back(element.get<double>());
  }
  return {};
}

Status read_matrix(const Json& json, std::string_view name, std::size_t most_rows, Matrix* matrix) {
  const std::string argument(name);
  if (!json.is_array()) return Status::error(argument + ": not a list; a matrix is a list of rows");
  if (json.size() > most_rows) {
    return Status::error(argument + ": " + std::to_string(json.size()) + " rows; an example to read has at most " +
                         std::to_string(most_rows) + ", since its tables grow with the square");
  }
  for (const Json& row : json) {
    ATTN_RETURN_IF_ERROR(
        read_row(row, argument + "[" + std::to_string(matrix->size()) + "]", &matrix->emplace_back()));
  }
  if (matrix->empty()) return Status::error(argument + ": no rows; give one for each token");
  const std::size_t columns = matrix->front().size();
  for (std::size_t row = 1; row < matrix->size(); ++row) {
    if ((*matrix)[row].size() == columns) continue;
    const std::size_t own = (*matrix)[row].size();
    return Status::error(argument + ": row " + std::to_string(row) + " has " + std::to_string(own) +
                         (own == 1 ? " number" : " numbers") + ", but row 0 has " + std::to_string(columns) +
                         " (rows count from 0); all rows must be equally long");
  }
  return {};
}

bool is_printable(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && std::none_of(name.begin(), name.end(), [](char byte) {
    return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F;
  });
}

Status read_tokens(const Json& json, std::vector<std::string>* tokens) {
  if (!json.is_array()) return Status::error("tokens: not a list; give one text a row");
  if (json.size() > kMostTokens) {
    return Status::error("tokens: " + std::to_string(json.size()) + "; an example to read has at most " +
                         std::to_string(kMostTokens) + ", since its tables grow with the square");
  }
  for (const Json& token : json) {
    const std::string where = "tokens[" + std::to_string(tokens->size()) + "]: ";
    if (!token.is_string())
      return Status::error(where + shortened(token.dump()) + " is not a text; write it in quotes");
    tokens->push_back(token.get<std::string>());
    if (!is_printable(tokens->back())) {
      return Status::error(where + "give 1 to " + std::to_string(kLongestName) +
                           " bytes without control characters");
    }
  }
  return {};
}

// A value as it would stand behind its flag: 0.5, "bottom-right", [2, 0] as "2,0".
Status read_option(const std::string& key, const Json& json, std::map<std::string, std::string>* options) {
  std::string text;
  if (json.is_boolean() && (key == "causal" || key == "alibi" || key == "cache")) {
    if (!json.get<bool>()) return {};
    text = "true";
  } else if (json.is_string() && key != "alibi" && key != "cache") {
    text = json.get<std::string>();
  } else if (json.is_number() && key != "alibi" && key != "cache") {
    text = json.dump();
  } else if (json.is_array() && (key == "window" || key == "lengths")) {
    for (const Json& element : json) text += (text.empty() ? "" : ",") + element.dump();
  }
  if (text.empty()) {
    return Status::error(key + ": " + shortened(json.dump()) + " is no value for it; write what would follow --" +
                         key);
  }
  options->emplace(key, text);
  return {};
}

void name_tokens_by_row(reference::Problem* problem) {
  const std::size_t rows = std::max(problem->x.size(), problem->q.size());
  for (std::size_t row = 0; row < rows; ++row) problem->tokens.push_back(std::to_string(row));
}

}  // namespace

Specification worked_specification() { return {worked_example(), {{"causal", "true"}}}; }

Status read_specification(const std::string& text, Specification* specification) {
  if (text.size() > kMostSpecificationBytes) {
    return Status::error("specification: more than " + std::to_string(kMostSpecificationBytes) +
                         " bytes; an example to read is far smaller");
  }
  Json json;
  ATTN_RETURN_IF_ERROR(parse(text, &json));
  ATTN_RETURN_IF_ERROR(check_keys(json));

  Specification read;
  reference::Problem& problem = read.problem;
  if (json.contains("tokens")) ATTN_RETURN_IF_ERROR(read_tokens(json["tokens"], &problem.tokens));
  const std::map<std::string_view, Matrix*> matrices = {
      {"x", &problem.x}, {"wq", &problem.wq}, {"wk", &problem.wk}, {"wv", &problem.wv},
      {"q", &problem.q}, {"k", &problem.k},   {"v", &problem.v}};
  for (const auto& [name, matrix] : matrices) {
    if (!json.contains(name)) continue;
    const bool is_projection = name.starts_with('w');
    ATTN_RETURN_IF_ERROR(
        read_matrix(json[std::string(name)], name, is_projection ? kMostColumns : kMostTokens, matrix));
  }
  if (!json.contains("tokens")) name_tokens_by_row(&problem);
  for (const std::string_view key : kOptions) {
    if (!json.contains(key)) continue;
    ATTN_RETURN_IF_ERROR(read_option(std::string(key), json[std::string(key)], &read.options));
  }
  *specification = std::move(read);
  return {};
}

}  // namespace attn::explain

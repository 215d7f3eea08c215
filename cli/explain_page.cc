#include "cli/explain_page.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "explain/changes.h"

namespace attn::cli {
namespace {

bool has(const std::vector<std::string>& tokens, const std::string& name) {
  return std::find(tokens.begin(), tokens.end(), name) != tokens.end();
}

// "k[2]=1,0", where no token is called "2", as what it is once rows have moved. Rows of wq, wk and wv do not.
std::string moved(const std::string& change, const std::vector<std::int64_t>& order,
                  const std::vector<std::string>& tokens) {
  const std::size_t open = change.find('['), close = change.rfind("]=");
  const std::string name = change.substr(open + 1, close - open - 1);
  if (change.starts_with('w') || has(tokens, name)) return change;
  std::int64_t row = 0;
  std::from_chars(name.data(), name.data() + name.size(), row);
  const auto place = std::find(order.begin(), order.end(), row);
  std::string now = std::to_string(place - order.begin());
  // A token may be called as the row's new number is: then the row goes by its own token.
  if (has(tokens, now)) now = tokens[static_cast<std::size_t>(row)];
  return change.substr(0, open + 1) + now + change.substr(close);
}

}  // namespace

void shuffle_lesson(const std::vector<std::int64_t>& order, PageLesson* lesson) {
  for (std::string& change : lesson->changes) change = moved(change, order, lesson->problem.tokens);
  require(explain::shuffle(order, &lesson->problem));
}

nlohmann::json specification_of(const PageLesson& lesson) {
  const reference::Problem& problem = lesson.problem;
  nlohmann::json json = {{"tokens", problem.tokens}};
  for (const auto& [name, matrix] :
       {std::pair("x", &problem.x), std::pair("wq", &problem.wq), std::pair("wk", &problem.wk),
        std::pair("wv", &problem.wv), std::pair("q", &problem.q), std::pair("k", &problem.k),
        std::pair("v", &problem.v)}) {
    if (!matrix->empty()) json[name] = *matrix;
  }
  for (const auto& [name, value] : lesson.options) {
    if (value == "true") {
      json[name] = true;
    } else {
      json[name] = value;
    }
  }
  if (!lesson.changes.empty()) json["set"] = lesson.changes;
  if (!lesson.mistake.empty()) json["mistake"] = lesson.mistake;
  return json;
}

}  // namespace attn::cli

// A trace as JSON.
#include "explain/json.h"

#include <nlohmann/json.hpp>

#include "diagnose/worked_mistake.h"
#include "explain/facts.h"
#include "explain/json_number.h"

namespace attn::explain {
namespace {

using Json = nlohmann::ordered_json;
using reference::CacheStep;
using reference::HeadTrace;
using reference::Tile;

Json to_json(double number) { return json_number(number); }
Json to_json(const Tile& tile);
Json to_json(const CacheStep& step);

template <class Element>
Json to_json(const std::vector<Element>& elements) {
  Json list = Json::array();
  for (const Element& element : elements) list.push_back(to_json(element));
  return list;
}

Json to_json(const Tile& tile) {
  return {{"keys", tile.keys},          {"max", to_json(tile.max)},
          {"sum", to_json(tile.sum)},   {"rescale", to_json(tile.rescale)},
          {"exps", to_json(tile.exps)}, {"out", to_json(tile.out)}};
}

Json to_json(const CacheStep& step) {
  return {{"token", step.token},
          {"appended", {{"k", to_json(step.key)}, {"v", to_json(step.value)}}},
          {"keys", step.keys},
          {"scores", to_json(step.scores)},
          {"weights", to_json(step.weights)},
          {"out", to_json(step.out)}};
}

// What one head's member holds; of several heads, a list.
template <class Member>
void put(Json* json, const char* key, const reference::Trace& trace, Member HeadTrace::*member) {
  if ((trace.heads.front().*member).empty()) return;
  if (trace.heads.size() == 1) {
    (*json)[key] = to_json(trace.heads.front().*member);
    return;
  }
  Json list = Json::array();
  for (const HeadTrace& head : trace.heads) list.push_back(to_json(head.*member));
  (*json)[key] = list;
}

Json saturation() {
  Json list = Json::array();
  for (const auto& scores : {spread_scores(), scaled_scores()}) {
    list.push_back({{"scores", to_json(scores)}, {"softmax", to_json(softmax(scores))}});
  }
  return list;
}

// The trace, key by key.
Json object_of(const reference::Trace& trace) {
  Json json;
  json["tokens"] = trace.tokens;
  if (!trace.x.empty()) {
    json["x"] = to_json(trace.x);
    json["wq"] = to_json(trace.wq);
    json["wk"] = to_json(trace.wk);
    json["wv"] = to_json(trace.wv);
  }
  json["q"] = to_json(trace.q);
  json["k"] = to_json(trace.k);
  json["v"] = to_json(trace.v);
  json["heads"] = trace.heads.size();
  json["scale"] = to_json(trace.scale);
  put(&json, "scores", trace, &HeadTrace::scores);
  put(&json, "scaled", trace, &HeadTrace::scaled);
  put(&json, "softcapped", trace, &HeadTrace::softcapped);
  put(&json, "biased", trace, &HeadTrace::biased);
  put(&json, "masked", trace, &HeadTrace::masked);
  put(&json, "weights", trace, &HeadTrace::weights);
  put(&json, "sink_weights", trace, &HeadTrace::sink_weights);
  put(&json, "lse", trace, &HeadTrace::lse);
  put(&json, "tiles", trace, &HeadTrace::tiles);
  put(&json, "steps", trace, &HeadTrace::steps);
  json["out"] = to_json(trace.out);
  json["saturation"] = saturation();
  return json;
}

}  // namespace

std::string as_json(const reference::Trace& trace, std::optional<int> indent) {
  return object_of(trace).dump(indent.value_or(-1)) + "\n";
}

std::string as_json(const reference::Problem& problem, const reference::Trace& trace, const Mistake& mistake,
                    std::optional<int> indent) {
  Json json = object_of(trace);
  const auto made = diagnose::make_mistake(mistake, problem, trace);
  json["mistake"] = {{"id", mistake.id},   {"name", mistake.name},           {"what", mistake.what},
                     {"fix", mistake.fix}, {"note", made ? made->note : ""}, {"shows", made.has_value()}};
  if (made) {
    json["mistaken_out"] = to_json(made->out);
    json["mistaken_weights"] = made->weights.size() == 1 ? to_json(made->weights.front()) : to_json(made->weights);
  }
  return json.dump(indent.value_or(-1)) + "\n";
}

}  // namespace attn::explain

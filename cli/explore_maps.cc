#include "cli/explore_maps.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <new>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "explain/head_json.h"
#include "explain/json_number.h"
#include "model/map_text.h"

namespace attn::cli {
namespace {

using explain::AttentionMap;
using explain::json_number;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "weights go out as they lie in memory");

constexpr auto kGlance = std::chrono::milliseconds(100);  // between two looks at whether anybody still waits

std::string random_name() {
  std::random_device random;
  return std::to_string(random()) + "-";
}

std::int64_t bytes_of(const AttentionMap& map) {
  return static_cast<std::int64_t>(map.weights.size() * sizeof(float));
}

std::string megabytes(std::int64_t bytes) { return std::to_string(bytes / 1'000'000) + " MB"; }

void check_text(const std::string& text) {
  if (text.empty())
    throw Refusal{400, "text: it is empty; give one of 1 to " + std::to_string(kMostTextBytes) + " bytes"};
  if (text.size() <= kMostTextBytes) return;
  throw Refusal{400, "text: " + std::to_string(text.size()) + " bytes, but a map here is of at most " +
                         std::to_string(kMostTextBytes) + "; give a shorter one"};
}

// The bytes of the weights, which must not be too many.
std::int64_t check_size(const model::TextModel& model, std::int64_t tokens) {
  if (tokens > kMostMapTokens) {
    throw Refusal{400, "text: " + std::to_string(tokens) + " tokens, but a map here has at most " +
                           std::to_string(kMostMapTokens) + "; give a shorter one"};
  }
  const std::int64_t bytes =
      model.layers() * model.heads() * tokens * tokens * static_cast<std::int64_t>(sizeof(float));
  if (bytes <= kMostMapBytes) return bytes;
  throw Refusal{400, "text: " + std::to_string(tokens) + " tokens make maps of " + megabytes(bytes) +
                         ", above the " + megabytes(kMostMapBytes) + " that are kept; give a shorter one"};
}

std::string bytes_at(std::span<const float> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

// The first token of a cell, as token i is in cell i · cells / tokens.
std::int64_t first_in(std::int64_t cell, std::int64_t cells, std::int64_t tokens) {
  return (cell * tokens + cells - 1) / cells;
}

// The largest weights of a head's cells. What is no number, which no softmax gives, counts for nothing.
std::vector<float> cells_of(const AttentionMap& map, std::size_t layer, std::int64_t head, std::int64_t cells) {
  const std::int64_t n = map.size();
  std::vector<float> largest(static_cast<std::size_t>(cells * cells), 0.0F);
  for (std::int64_t i = 0; i < n; ++i) {
    const float* row = map.row(layer, head, i).data();
    const std::int64_t visible = map.causal ? i + 1 : n, line = i * cells / n;
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      const std::int64_t end = std::min(first_in(cell + 1, cells, n), visible);
      float& most = largest[static_cast<std::size_t>(line * cells + cell)];
      for (std::int64_t j = first_in(cell, cells, n); j < end; ++j) most = std::max(most, row[j]);
    }
  }
  return largest;
}

char byte_of(float weight) {
  const float shade = 255.0F * std::sqrt(std::min(weight, 1.0F));
  return static_cast<char>(static_cast<unsigned char>(std::lround(shade)));
}

}  // namespace

MapShelf::MapShelf(const model::TextModel& model, std::string name)
    : model_(model), name_(std::move(name)), run_(random_name()) {}

void MapShelf::check_wanted(const std::function<bool()>& is_wanted) const {
  if (stopping_) throw Refusal{503, "map: the program is ending; start it again"};
  if (!is_wanted()) throw Refusal{503, "map: whoever asked for it has gone; ask again"};
}

std::shared_ptr<const KeptMap> MapShelf::make(const std::string& text, const std::function<bool()>& is_wanted) {
  check_text(text);
  std::unique_lock working(model_in_use_, std::defer_lock);
  // A page that goes on to another text leaves the one before: made all the same, it would keep the next one waiting.
  do check_wanted(is_wanted);
  while (!working.try_lock_for(kGlance));
  const model::MapOptions options{.most_bytes = kMostMapBytes, .layer_done = [&] { check_wanted(is_wanted); }};
  const std::vector<model::Token> tokens = model_.tokenizer().encode(text);
  make_room(check_size(model_, static_cast<std::int64_t>(tokens.size())));
  const auto kept = std::make_shared<KeptMap>();
  const Status status = model::map_tokens(model_, tokens, options, &kept->map);
  if (!status.ok()) throw Refusal{400, status.message()};
  kept->map.model = name_;
  kept->id = run_ + std::to_string(++made_);
  const std::lock_guard putting(shelf_in_use_);
  kept_.push_back(kept);
  if (kept_.size() > kMostMaps) kept_.pop_front();
  return kept;
}

// Before the next map is made, so that all together never take more than is said.
void MapShelf::make_room(std::int64_t bytes) {
  const std::lock_guard clearing(shelf_in_use_);
  const auto held = [this] {
    std::int64_t sum = 0;
    for (const auto& kept : kept_) sum += bytes_of(kept->map);
    return sum;
  };
  while (!kept_.empty() && held() + bytes > kMostMapBytes) kept_.pop_front();
}

std::shared_ptr<const KeptMap> MapShelf::find(const std::string& id) const {
  const std::lock_guard looking(shelf_in_use_);
  for (const auto& kept : kept_) {
    if (kept->id == id) return kept;
  }
  throw Refusal{
      404, "id: no map of that name is kept (the last " + std::to_string(kMostMaps) + " are); map the text again"};
}

json summary(const KeptMap& kept) {
  const AttentionMap& map = kept.map;
  return {{"id", kept.id},
          {"model", map.model},
          {"tokens", map.tokens},
          {"special", map.special},
          {"causal", map.causal},
          {"layers", map.layers.size()},
          {"heads", map.heads},
          {"fidelity", json_number(map.fidelity)},
          {"rows_judged", map.rows_judged},
          {"caveat", explain::kMapCaveat}};
}

std::string thumbnails(const AttentionMap& map, std::int64_t most) {
  const std::int64_t cells = std::min(most, map.size());
  std::string bytes;
  bytes.reserve(map.layers.size() * static_cast<std::size_t>(map.heads * cells * cells));
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t head = 0; head < map.heads; ++head) {
      for (const float cell : cells_of(map, layer, head, cells)) bytes += byte_of(cell);
    }
  }
  return bytes;
}

std::string head_weights(const AttentionMap& map, std::int64_t layer, std::int64_t head) {
  const auto table = static_cast<std::size_t>(map.size() * map.size());
  return bytes_at({map.row(static_cast<std::size_t>(layer), head, 0).data(), table});
}

json ranking(const AttentionMap& map, std::int64_t from) {
  json all = json::array();
  for (const explain::HeadRow& row : explain::rank_heads(map, from)) all.push_back(json(explain::head_json(row)));
  return all;
}

json pair_weights(const AttentionMap& map, std::int64_t from, std::int64_t to) {
  struct Link {
    std::int64_t layer, head;
    float weight;
  };
  std::vector<Link> links;
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t head = 0; head < map.heads; ++head)
      links.push_back({map.layers[layer], head, map.row(layer, head, from)[static_cast<std::size_t>(to)]});
  }
  // What is no number comes last: it has no place in an order.
  std::stable_sort(links.begin(), links.end(), [](const Link& a, const Link& b) {
    return !std::isnan(a.weight) && (std::isnan(b.weight) || a.weight > b.weight);
  });
  json all = json::array();
  for (const Link& link : links)
    all.push_back({{"layer", link.layer}, {"head", link.head}, {"weight", json_number(link.weight)}});
  return all;
}

}  // namespace attn::cli

#include "model/head_roles.h"

#include <algorithm>
#include <random>
#include <string>

#include "explain/attention_map.h"
#include "model/map_text.h"

namespace attn::model {
namespace {

std::vector<Token> ordinary_tokens(const Tokenizer& tokenizer) {
  std::vector<Token> tokens;
  for (Token token = 0; token < tokenizer.size(); ++token) {
    if (tokenizer.is_ordinary(token)) tokens.push_back(token);
  }
  return tokens;
}

// `count` different ones. Not std::shuffle, which differs from library to library.
std::vector<Token> draw(std::vector<Token> tokens, std::int64_t count, std::mt19937_64& random) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    std::swap(tokens[i], tokens[i + random() % (tokens.size() - i)]);
  tokens.resize(static_cast<std::size_t>(count));
  return tokens;
}

// Begin token, if any; a sequence; the same again.
struct Repeated {
  std::vector<Token> tokens;
  std::int64_t start = 0, length = 0;  // of the first time
};

Repeated repeat(const TextModel& model, std::vector<Token> drawn) {
  Repeated repeated;
  // A decoder without one in front of its texts is measured without one, too.
  const std::vector<Token> empty = model.tokenizer().encode("");
  if (!empty.empty()) repeated.tokens.push_back(empty.front());
  repeated.start = static_cast<std::int64_t>(repeated.tokens.size());
  repeated.length = static_cast<std::int64_t>(drawn.size());
  for (int time = 0; time < 2; ++time) repeated.tokens.insert(repeated.tokens.end(), drawn.begin(), drawn.end());
  if (empty.size() > 1) repeated.tokens.push_back(empty.back());
  return repeated;
}

void add_repeated(const explain::AttentionMap& map, const Repeated& repeated, double share,
                  std::vector<HeadRoles>* roles) {
  const std::int64_t n = repeated.length;
  for (HeadRoles& head : *roles) {
    for (std::int64_t i = repeated.start + n; i < repeated.start + 2 * n; ++i) {
      const std::span<const float> row = map.row(static_cast<std::size_t>(head.layer), head.head, i);
      const auto weight = [&](std::int64_t j) {
        return share * row[static_cast<std::size_t>(j)] / static_cast<double>(n);
      };
      head.previous += weight(i - 1);
      head.duplicate += weight(i - n);
      head.induction += weight(i - n + 1);
      head.first += weight(0);
    }
  }
}

}  // namespace

Status measure_roles(const TextModel& model, std::span<const Token> text, const RoleOptions& options,
                     std::vector<HeadRoles>* roles) {
  const std::vector<Token> ordinary = ordinary_tokens(model.tokenizer());
  if (static_cast<std::int64_t>(ordinary.size()) < options.length) {
    return Status::error("model: " + std::to_string(ordinary.size()) + " tokens of texts, but " +
                         std::to_string(options.length) + " different ones are drawn; give a model with more");
  }
  std::vector<HeadRoles> measured;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    for (std::int64_t head = 0; head < model.heads(); ++head) measured.push_back({.layer = layer, .head = head});
  }
  std::mt19937_64 random(options.seed);
  const MapOptions map_options{.layer_done = options.layer_done};
  explain::AttentionMap map;
  for (std::int64_t i = 0; i < options.sequences; ++i) {
    const Repeated repeated = repeat(model, draw(ordinary, options.length, random));
    ATTN_RETURN_IF_ERROR(map_tokens(model, repeated.tokens, map_options, &map));
    add_repeated(map, repeated, 1.0 / static_cast<double>(options.sequences), &measured);
  }
  ATTN_RETURN_IF_ERROR(map_tokens(model, text, map_options, &map));
  const std::vector<explain::HeadHabits> habits = habits_of(map);
  for (std::size_t i = 0; i < habits.size(); ++i) {
    measured[i].text_previous = habits[i].previous;
    measured[i].text_first = habits[i].first;
  }
  *roles = std::move(measured);
  return {};
}

}  // namespace attn::model

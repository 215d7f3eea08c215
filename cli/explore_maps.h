// The maps that a page looks at: made of texts, a few of them kept, and handed out as the numbers that a picture needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "explain/attention_map.h"
#include "model/text_model.h"

namespace attn::cli {

/// What a request is refused with: a status of HTTP, and why.
struct Refusal {
  int status;
  std::string sentence;
};

inline constexpr std::size_t kMostTextBytes = 20'000;
inline constexpr std::int64_t kMostMapTokens = 1'500;
inline constexpr std::size_t kMostMaps = 2;
/// Of weights, in all maps that are kept.
inline constexpr std::int64_t kMostMapBytes = std::int64_t{5}
                                              << 28;  // 1,000 tokens of a model of 270 heads are 1.08 GB

struct KeptMap {
  std::string id;  ///< of this map alone, also among those that another run of the program makes
  explain::AttentionMap map;
};

/// Any thread may call. Whoever holds a map keeps it, also when the shelf has let it go.
class MapShelf {
 public:
  /// `model` must outlive the shelf; `name` is what to call it.
  MapShelf(const model::TextModel& model, std::string name);

  /// Makes the map of all layers. One at a time: the model is one thread's as long as it runs. Throws Refusal where the text
  /// is empty, too long, or too much for the model or the memory, after stop(), or once `is_wanted` says no, which is asked
  /// while the model is waited for and after each layer.
  std::shared_ptr<const KeptMap> make(const std::string& text, const std::function<bool()>& is_wanted);

  /// Throws Refusal{404} where no such map is kept.
  std::shared_ptr<const KeptMap> find(const std::string& id) const;

  /// Ends make(): soon where it waits for the model, otherwise after the layer that it is at.
  void stop() { stopping_ = true; }

 private:
  void check_wanted(const std::function<bool()>& is_wanted) const;
  void make_room(std::int64_t bytes);

  const model::TextModel& model_;
  const std::string name_;
  const std::string run_;  // a random name of this run
  std::atomic<bool> stopping_ = false;
  std::timed_mutex model_in_use_;
  std::int64_t made_ = 0;
  mutable std::mutex shelf_in_use_;
  std::deque<std::shared_ptr<const KeptMap>> kept_;  // oldest first
};

/// What a page has to know of a map: its id, model, tokens, sizes and how exact it is.
nlohmann::json summary(const KeptMap& kept);

/// All heads in small: [layers][heads][cells][cells] bytes, where cells is `most` or, of shorter texts, the tokens. Token i is in
/// cell i · cells / tokens. A cell is the largest weight w in it, as 255 · √w rounded, so that small ones show.
std::string thumbnails(const explain::AttentionMap& map, std::int64_t most);

/// One head: [queries][keys], float32, little-endian.
std::string head_weights(const explain::AttentionMap& map, std::int64_t layer, std::int64_t head);

/// Every head's {layer, head, beyond, first, previous, itself} for one query, in the order of explain::rank_heads().
nlohmann::json ranking(const explain::AttentionMap& map, std::int64_t from);

/// Every head's {layer, head, weight} from one token to another, the largest weight first.
nlohmann::json pair_weights(const explain::AttentionMap& map, std::int64_t from, std::int64_t to);

}  // namespace attn::cli

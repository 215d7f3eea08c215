// What attn explore answers, whatever carries it: paths, parameters and what comes back.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace attn::cli {

class MapShelf;

/// A request that was let in.
struct Query {
  std::string path;
  std::multimap<std::string, std::string> parameters;
  std::string body;
  std::function<bool()> is_wanted = [] { return true; };  ///< whether somebody still waits for the answer
};

struct ApiAnswer {
  std::string type;  ///< of what is in the body
  std::string body;
};

///   GET  /                                        the page
///   POST /api/map {"text": "…"}                   summary() of the new map
///   GET  /api/thumbnails?id=&size=                thumbnails(), size 8 to 64
///   GET  /api/weights?id=&layer=&head=            head_weights()
///   GET  /api/ranking?id=&from=                   ranking()
///   GET  /api/pair?id=&from=&to=                  pair_weights()
/// (cli/explore_maps.h says what these are.) Any thread may call.
class ExploreApi {
 public:
  /// `page` makes the page; `maps`, which must outlive this, is null where no model was given.
  ExploreApi(std::function<std::string()> page, MapShelf* maps) : page_(std::move(page)), maps_(maps) {}

  /// "GET" or "POST"; empty where nothing is at that path.
  static std::string_view method_of(std::string_view path);

  /// Throws Refusal or Failure, with a sentence that names the parameter.
  ApiAnswer answer(const Query& query) const;

 private:
  std::function<std::string()> page_;
  MapShelf* maps_;
};

/// {"error": "sentence"}
std::string error_json(const std::string& sentence);

}  // namespace attn::cli

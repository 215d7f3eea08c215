#include "cli/map_files.h"

#include <charconv>
#include <string_view>

#include "cli/map_page.h"
#include "cli/page_resource.h"
#include "cli/verbs.h"
#include "explain/files.h"
#include "formats/write.h"

namespace attn::cli {
namespace {

// Pixels of a PNG for each of the picture's own: sharp on today's screens.
constexpr double kPngScale = 2;

// A .csv longer than this is no longer read by anything that reads .csv.
constexpr double kMostLines = 20e6;

// RFC 4180.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string number(float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

std::string csv_of(const explain::AttentionMap& map, const explain::MapPictureOptions& options) {
  std::string csv = "layer,head,query_position,query_token,key_position,key_token,weight\n";
  const std::int64_t n = map.size(), first = options.from.value_or(0), last = options.from.value_or(n - 1);
  for (std::size_t layer = 0; layer < map.layers.size(); ++layer) {
    for (std::int64_t head = 0; head < map.heads; ++head) {
      if (options.head && head != *options.head) continue;
      const std::string beginning = std::to_string(map.layers[layer]) + "," + std::to_string(head) + ",";
      for (std::int64_t i = first; i <= last; ++i) {
        const auto row = map.row(layer, head, i);
        const std::string query =
            beginning + std::to_string(i) + "," + quoted(map.tokens[static_cast<std::size_t>(i)]) + ",";
        for (std::int64_t j = 0; j < (map.causal ? i + 1 : n); ++j) {
          csv += query + std::to_string(j) + "," + quoted(map.tokens[static_cast<std::size_t>(j)]) + "," +
                 number(row[static_cast<std::size_t>(j)]) + "\n";
        }
      }
    }
  }
  return csv;
}

void check_lines(const explain::AttentionMap& map, const explain::MapPictureOptions& options) {
  const double n = static_cast<double>(map.size());
  const double heads = static_cast<double>(map.layers.size()) * static_cast<double>(options.head ? 1 : map.heads);
  const double lines = heads * n * (options.from ? 1 : n);
  if (lines > kMostLines)
    throw Failure{2, "-o: a .csv of " + std::to_string(static_cast<std::int64_t>(lines)) +
                         " lines is more than is written; choose --layer, --head or --from, or write .npz"};
}

// [layers, heads, tokens, tokens], of them the head and the row that are chosen.
TensorView chosen_weights(const explain::AttentionMap& map, const explain::MapPictureOptions& options) {
  const std::int64_t n = map.size();
  const std::int64_t first = options.head.value_or(0) * n * n + options.from.value_or(0) * n;
  return {map.weights.data() + first,
          DType::f32,
          {static_cast<std::int64_t>(map.layers.size()), options.head ? 1 : map.heads, options.from ? 1 : n, n},
          {map.heads * n * n, n * n, n, 1}};
}

}  // namespace

void check_map_file(const std::string& path) {
  for (const std::string_view extension : {".svg", ".png", ".csv", ".npz"}) {
    if (path.ends_with(extension)) return;
  }
  if (!path.ends_with(".html"))
    throw Failure{2, "-o: " + path + " does not end in .html, .svg, .png, .csv or .npz; name a file that does"};
  if (!page()) throw Failure{2, "-o: " + path + ": " + kNoPage};
}

void write_map(const explain::AttentionMap& map, const explain::MapPictureOptions& options,
               const std::string& path) {
  if (path.ends_with(".npz")) return require(formats::write_tensor(path, chosen_weights(map, options), "weights"));
  std::string bytes;
  if (path.ends_with(".html")) {
    bytes = page_with({{"map", page_map(map, options.head, options.from)}});
  } else if (path.ends_with(".csv")) {
    check_lines(map, options);
    bytes = csv_of(map, options);
  } else {
    const explain::Picture picture = explain::draw_map(map, options);
    require(path.ends_with(".svg") ? explain::draw_svg(picture, &bytes)
                                   : explain::draw_png(picture, kPngScale, &bytes));
  }
  require(explain::write_file(path, bytes));
}

}  // namespace attn::cli

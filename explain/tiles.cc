// The same result tile by tile, as FlashAttention gets it.
#include <cmath>

#include "explain/writer.h"

namespace attn::explain {
namespace {

using reference::HeadTrace;
using reference::Tile;

Table tiles_table(const Writer& writer, const std::vector<Tile>& tiles, std::size_t query) {
  Table table{"query " + writer.token(query), {"max", "rescale", "exps", "sum", "out so far"}, {}};
  for (const Tile& tile : tiles) {
    table.rows.push_back({writer.names_of({tile.keys.begin(), tile.keys.end()}),
                          {number_text(tile.max), number_text(tile.rescale), vector_text(tile.exps),
                           number_text(tile.sum), vector_text(tile.out)}});
  }
  return table;
}

// What the last tile's values are divided by: its sum, and the sink's share where there is one.
std::string divisor_text(const HeadTrace& head, std::size_t query) {
  const Tile& last = head.tiles[query].back();
  if (head.sink_weights.empty()) return number_text(last.sum);
  const double with_sink = std::exp(head.lse[query] - last.max);
  const std::string sink = number_text(head.sink_weights[query] * with_sink);
  return std::string("(") + number_text(last.sum) + " + " + sink + ")";
}

}  // namespace

void tell_tiles(Writer& writer, const HeadTrace& head) {
  const std::string height = std::to_string(writer.problem().tile);
  writer.step("the same, tile by tile (" + height + (height == "1" ? " key a tile)" : " keys a tile)"));
  writer.say(
      "Nobody has to hold a whole row of scores. A query walks through its keys tile by tile and keeps three "
      "things: the largest score so far (max), the sum of exp(score − max) so far, and the values added up "
      "with these exponentials. When a tile brings a larger score, sum and values so far are multiplied by "
      "rescale = exp(old max − new max), as if the new one had been known from the start. The max starts at −∞, so "
      "the first rescale is exp(−∞ − max) = 0: there is nothing yet to keep.");
  if (writer.problem().tile > static_cast<std::int64_t>(head.k.size())) {
    writer.say("A tile of " + height + " keys is larger than all keys together: there is one tile.");
  }
  if (!head.sink_weights.empty()) writer.say("The sink joins the sum once, at the end.");
  for (const std::size_t i : writer.queries_to_write_out()) {
    if (head.tiles[i].empty()) {
      writer.calculate({{writer.token(i), "sees no key: " + vector_text(head.out[i], kOutputDigits)}});
      continue;
    }
    writer.add({tiles_table(writer, head.tiles[i], i)});
    const Tile& last = head.tiles[i].back();
    writer.calculate({{writer.token(i), vector_text(last.out) + " / " + divisor_text(head, i) + " = " +
                                            vector_text(head.out[i], kOutputDigits)}});
  }
  writer.note(
      "The outputs are those of the step before. This is how long rows are worked without the table: memory "
      "grows with N, not with N².");
}

}  // namespace attn::explain

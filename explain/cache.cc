// The same result token by token, as a model that writes gets it from its KV cache.
#include "explain/writer.h"

namespace attn::explain {
namespace {

using reference::CacheStep;
using reference::HeadTrace;

// What the cache holds, and what the new query makes of it.
Table cache_table(const Writer& writer, const HeadTrace& head, const CacheStep& step) {
  Table table{
      "the cache after " + writer.token(static_cast<std::size_t>(step.token)), {"k", "v", "score", "weight"}, {}};
  std::size_t seen = 0;
  for (std::int64_t j = 0; j <= step.token; ++j) {
    const auto row = static_cast<std::size_t>(j);
    Table::Row cells{writer.token(row), {vector_text(head.k[row]), vector_text(head.v[row]), "hidden", "0"}};
    if (seen < step.keys.size() && step.keys[seen] == j) {
      cells.cells[2] = number_text(step.scores[seen]);
      cells.cells[3] = number_text(step.weights[seen]);
      ++seen;
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string count_text(std::int64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

}  // namespace

void tell_cache(Writer& writer, const HeadTrace& head) {
  writer.step("the same, token by token, through a KV cache");
  writer.say(
      "A model that writes has one new token at a time. No query looks at a later token, so the keys and values of "
      "earlier "
      "ones never change: they are kept in a cache. A new token appends its key and its value, and only its query "
      "is "
      "worked.");
  for (const std::size_t i : writer.queries_to_write_out()) {
    const CacheStep& step = head.steps[i];
    writer.calculate(
        {{writer.token(i), "appends k = " + vector_text(step.key) + ", v = " + vector_text(step.value)},
         {"", "asks with q = " + vector_text(head.q[i])}});
    writer.add({cache_table(writer, head, step)});
    writer.calculate({{writer.token(i), "out = " + vector_text(step.out, kOutputDigits)}});
  }
  const auto tokens = static_cast<std::int64_t>(head.steps.size());
  writer.note(
      "The outputs are those of the whole, number for number, as long as the cache keeps numbers unrounded. "
      "After " +
      count_text(tokens, "token") + " the cache has worked " + count_text(tokens, "key") +
      " and as many values; starting afresh with each token would have taken " +
      std::to_string(tokens * (tokens + 1) / 2) + ".");
}

}  // namespace attn::explain

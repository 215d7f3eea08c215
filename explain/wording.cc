// How tokens, tables and the rules of visibility are worded.
#include <utility>

#include "explain/writer.h"

namespace attn::explain {
namespace {

std::vector<std::string> cells_of(const std::vector<double>& numbers, int digits = kDigits) {
  std::vector<std::string> cells;
  for (const double number : numbers) cells.push_back(number_text(number, digits));
  return cells;
}

// "p − 2" or "p"; unbounded, the end of the keys.
std::string window_edge(const std::optional<std::int64_t>& reach, const std::string& sign, const std::string& end) {
  if (!reach) return end;
  return *reach == 0 ? "p" : "p " + sign + " " + std::to_string(*reach);
}

std::string window_rule(const AttentionOptions& options) {
  std::string rule = "Window: a query at position p sees keys from " +
                     window_edge(options.window_left, "−", "the first") + " to " +
                     window_edge(options.window_right, "+", "the last");
  if (options.sink_tokens == 1) rule += ", and always the first key";
  if (options.sink_tokens > 1) rule += ", and always the first " + std::to_string(options.sink_tokens) + " keys";
  return rule + ".";
}

}  // namespace

void Writer::rows(const std::string& caption, const reference::Matrix& matrix, int digits) {
  Table table{caption, {}, {}};
  for (std::size_t r = 0; r < matrix.size(); ++r) table.rows.push_back({token(r), cells_of(matrix[r], digits)});
  document_.blocks.push_back(std::move(table));
}

void Writer::queries_by_keys(const std::string& caption, const reference::Matrix& matrix) {
  Table table{caption, trace_.tokens, {}};
  for (std::size_t r = 0; r < matrix.size(); ++r) table.rows.push_back({token(r), cells_of(matrix[r])});
  document_.blocks.push_back(std::move(table));
}

void Writer::numbered_rows(const std::string& caption, const reference::Matrix& matrix) {
  Table table{caption, {}, {}};
  for (std::size_t r = 0; r < matrix.size(); ++r) table.rows.push_back({std::to_string(r), cells_of(matrix[r])});
  document_.blocks.push_back(std::move(table));
}

std::string Writer::names_of(const std::vector<std::size_t>& rows) const {
  std::vector<std::string> names;
  for (const std::size_t r : rows) names.push_back(token(r));
  return list_text(names);
}

std::vector<std::size_t> Writer::queries_to_write_out() const {
  const std::size_t count = trace_.tokens.size();
  if (count > kMostTerms) return {count - 1};
  std::vector<std::size_t> queries;
  for (std::size_t i = 0; i < count; ++i) queries.push_back(i);
  return queries;
}

std::vector<std::string> visibility_rules(const AttentionOptions& options) {
  std::vector<std::string> rules;
  if (options.causal) {
    rules.emplace_back("Causal: a query sees its own position and what came before, never what comes after.");
  }
  if (options.window_left || options.window_right) rules.push_back(window_rule(options));
  if (options.alignment == Alignment::offset && options.position_offset != 0) {
    rules.push_back("Positions: query i is at position i + " +
                    factor_text(static_cast<double>(options.position_offset)) + ", key j at position j.");
  }
  if (!options.key_lengths.empty()) {
    const std::int64_t length = options.key_lengths[0];
    rules.push_back(length == 1 ? "Length: only the first key counts."
                                : "Length: only the first " + std::to_string(length) + " keys count.");
  }
  if (options.mask) rules.emplace_back("Mask: a key that the mask marks false is hidden.");
  if (options.bias) rules.emplace_back("Bias: a key with a bias of −∞ is hidden.");
  return rules;
}

std::string list_text(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t n = 0; n < words.size(); ++n) {
    text += (n == 0 ? "" : n + 1 == words.size() ? " and " : ", ") + words[n];
  }
  return text;
}

}  // namespace attn::explain

// Parsing and applying what-ifs.
#include "explain/changes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace attn::explain {
namespace {

using reference::Matrix;
using reference::Problem;

template <class Number>
bool parse_all(const std::string& text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [stopped_at, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped_at == end;
}

Status read_numbers(const std::string& change, const std::string& text, std::vector<double>* numbers) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string piece = text.substr(begin, comma - begin);
    double number = 0;
    if (!parse_all(piece, &number) || !std::isfinite(number)) {
      return Status::error("--set " + change + ": \"" + piece + "\" is not a finite number; write k[0]=2,0");
    }
    numbers->push_back(number);
    begin = comma + 1;
  }
  return {};
}

Status find_row(const std::string& change, const std::string& name, const std::vector<std::string>& tokens,
                std::int64_t* row) {
  const auto found = std::find(tokens.begin(), tokens.end(), name);
  if (found == tokens.end()) {
    if (parse_all(name, row) && *row >= 0) return {};
    return Status::error("--set " + change + ": \"" + name + "\" is no token here and no row, counted from 0");
  }
  const auto again = std::find(found + 1, tokens.end(), name);
  if (again != tokens.end()) {
    return Status::error("--set " + change + ": \"" + name + "\" is in row " +
                         std::to_string(found - tokens.begin()) + " and again in row " +
                         std::to_string(again - tokens.begin()) +
                         "; tokens that repeat have to be named apart to be changed");
  }
  *row = found - tokens.begin();
  return {};
}

Status replace_row(const std::string& change, std::int64_t row, std::vector<double> numbers, Matrix* matrix) {
  if (matrix->empty()) {
    return Status::error("--set " + change + ": this example has no such matrix, it gives q, k and v themselves");
  }
  if (row >= static_cast<std::int64_t>(matrix->size())) {
    return Status::error("--set " + change + ": row " + std::to_string(row) + " is not there; it has " +
                         std::to_string(matrix->size()) + " rows, counted from 0");
  }
  if (numbers.size() != matrix->front().size()) {
    return Status::error("--set " + change + ": " + std::to_string(numbers.size()) + " numbers, but a row has " +
                         std::to_string(matrix->front().size()));
  }
  (*matrix)[row] = std::move(numbers);
  return {};
}

void reorder(const std::vector<std::int64_t>& order, Matrix* matrix) {
  if (matrix->empty()) return;
  Matrix reordered;
  for (const std::int64_t row : order) {
    if (row < static_cast<std::int64_t>(matrix->size())) reordered.push_back((*matrix)[row]);
  }
  *matrix = std::move(reordered);
}

}  // namespace

Status apply_change(const std::string& change, Problem* problem) {
  const std::size_t open = change.find('['), close = change.rfind("]=");
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return Status::error("--set " + change + ": not of the form k[4471]=2,0");
  }
  const std::string matrix = change.substr(0, open);
  const std::map<std::string, Matrix*> matrices = {
      {"x", &problem->x}, {"wq", &problem->wq}, {"wk", &problem->wk}, {"wv", &problem->wv}};
  const bool is_result = matrix == "q" || matrix == "k" || matrix == "v";
  if (!is_result && !matrices.contains(matrix)) {
    return Status::error("--set " + change + ": \"" + matrix + "\" is none of q, k, v, x, wq, wk, wv");
  }
  std::int64_t row = 0;
  std::vector<double> numbers;
  const bool names_tokens = !matrix.starts_with('w');
  ATTN_RETURN_IF_ERROR(find_row(change, change.substr(open + 1, close - open - 1),
                                names_tokens ? problem->tokens : std::vector<std::string>{}, &row));
  ATTN_RETURN_IF_ERROR(read_numbers(change, change.substr(close + 2), &numbers));
  if (!is_result) return replace_row(change, row, std::move(numbers), matrices.at(matrix));
  problem->replaced.push_back({matrix[0], row, std::move(numbers)});
  return {};
}

Status shuffle(const std::vector<std::int64_t>& order, Problem* problem) {
  const std::vector<std::string> tokens = problem->tokens;
  std::vector<std::int64_t> ascending = order;
  std::sort(ascending.begin(), ascending.end());
  bool is_permutation = ascending.size() == tokens.size();
  for (std::size_t row = 0; is_permutation && row < ascending.size(); ++row) {
    is_permutation = ascending[row] == static_cast<std::int64_t>(row);
  }
  if (!is_permutation) {
    return Status::error("--shuffle: name each of the rows 0 to " + std::to_string(tokens.size() - 1) +
                         " once, in the new order");
  }
  for (std::size_t i = 0; i < order.size(); ++i) problem->tokens[i] = tokens[order[i]];
  for (Matrix* matrix : {&problem->x, &problem->q, &problem->k, &problem->v}) reorder(order, matrix);
  for (auto& replacement : problem->replaced) {
    const auto place = std::find(order.begin(), order.end(), replacement.row);
    if (place != order.end()) replacement.row = place - order.begin();
  }
  return {};
}

}  // namespace attn::explain

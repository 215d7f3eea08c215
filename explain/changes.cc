// Parsing and applying what-ifs.
#include "explain/changes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

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

// Rows of wq, wk and wv have numbers only.
std::vector<std::string> row_names(const std::string& matrix, const Problem& problem) {
  return matrix.starts_with('w') ? std::vector<std::string>{} : problem.tokens;
}

// "; the tokens are a, b, c", as far as that is a line to read.
std::string tokens_of(const std::vector<std::string>& tokens) {
  constexpr std::size_t kMostNamed = 8;
  if (tokens.empty()) return "";
  std::string list = "; the tokens are ";
  for (std::size_t i = 0; i < std::min(tokens.size(), kMostNamed); ++i) list += (i == 0 ? "" : ", ") + tokens[i];
  return list + (tokens.size() > kMostNamed ? ", …" : "");
}

Status find_row(const std::string& change, const std::string& name, const std::vector<std::string>& tokens,
                std::int64_t* row) {
  const auto found = std::find(tokens.begin(), tokens.end(), name);
  if (found == tokens.end()) {
    if (parse_all(name, row) && *row >= 0) return {};
    return Status::error("--set " + change + ": \"" + name + "\" is no token here and no row, counted from 0" +
                         tokens_of(tokens));
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

// The matrix that is changed in place; nullptr for q, k and v, whose rows are put in after the projection.
Matrix* matrix_of(const std::string& name, Problem* problem) {
  const std::map<std::string, Matrix*> matrices = {
      {"x", &problem->x}, {"wq", &problem->wq}, {"wk", &problem->wk}, {"wv", &problem->wv}};
  const auto found = matrices.find(name);
  return found == matrices.end() ? nullptr : found->second;
}

// How many rows a matrix has, and how many numbers each of them: what is given for q, k and v, or projected.
std::pair<std::size_t, std::size_t> size_of(const std::string& name, Problem* problem) {
  const std::map<std::string, Matrix*> given = {{"q", &problem->q}, {"k", &problem->k}, {"v", &problem->v}};
  const Matrix* matrix = matrix_of(name, problem);
  if (matrix == nullptr) matrix = problem->x.empty() ? given.at(name) : matrix_of("w" + name, problem);
  const std::size_t columns = matrix->empty() ? 0 : matrix->front().size();
  return {given.contains(name) ? problem->tokens.size() : matrix->size(), columns};
}

std::string counted(std::size_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// What a change says, once it fits the problem.
struct Change {
  std::string text, matrix;
  std::int64_t row = 0;
  std::vector<double> numbers;
};

Status check_size(const Change& change, Problem* problem) {
  const std::string argument = "--set " + change.text + ": ";
  const auto [rows, columns] = size_of(change.matrix, problem);
  if (rows == 0) {
    return Status::error(argument + "this example has no " + change.matrix +
                         ", it gives q, k and v themselves; change a row of these");
  }
  if (change.row >= static_cast<std::int64_t>(rows)) {
    return Status::error(argument + "row " + std::to_string(change.row) + " is not there; " + change.matrix +
                         " has " + counted(rows, "row") + ", counted from 0" +
                         tokens_of(row_names(change.matrix, *problem)));
  }
  if (change.numbers.size() != columns) {
    return Status::error(argument + counted(change.numbers.size(), "number") + ", but a row of " + change.matrix +
                         " has " + std::to_string(columns) + "; give as many, separated by commas");
  }
  return {};
}

Status read_change(const std::string& text, Problem* problem, Change* change) {
  const std::size_t open = text.find('['), close = text.rfind("]=");
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return Status::error("--set " + text + ": not of the form k[4471]=2,0");
  }
  change->text = text;
  change->matrix = text.substr(0, open);
  const bool is_result = change->matrix == "q" || change->matrix == "k" || change->matrix == "v";
  if (!is_result && matrix_of(change->matrix, problem) == nullptr) {
    return Status::error("--set " + text + ": \"" + change->matrix + "\" is none of q, k, v, x, wq, wk, wv");
  }
  ATTN_RETURN_IF_ERROR(
      find_row(text, text.substr(open + 1, close - open - 1), row_names(change->matrix, *problem), &change->row));
  ATTN_RETURN_IF_ERROR(read_numbers(text, text.substr(close + 2), &change->numbers));
  return check_size(*change, problem);
}

// Two changes of a row: one of them would be lost.
Status check_once(const std::vector<Change>& changes, const Change& next) {
  for (const Change& earlier : changes) {
    if (earlier.matrix != next.matrix || earlier.row != next.row) continue;
    return Status::error("--set " + next.text + ": row " + std::to_string(next.row) + " of " + next.matrix +
                         " is set by --set " + earlier.text + " already; give one of the two");
  }
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

// Each row once.
Status check_order(const std::vector<std::int64_t>& order, std::int64_t rows) {
  std::string list, fault;
  for (auto row = order.begin(); row != order.end(); ++row) {
    if (!list.empty()) list += ',';
    list += std::to_string(*row);
    if (!fault.empty()) continue;
    if (*row < 0 || *row >= rows) fault = "row " + std::to_string(*row) + " is not there";
    if (std::find(order.begin(), row, *row) != row) fault = "row " + std::to_string(*row) + " comes twice";
  }
  for (std::int64_t row = 0; row < rows && fault.empty(); ++row) {
    if (std::find(order.begin(), order.end(), row) == order.end()) {
      fault = "row " + std::to_string(row) + " is missing";
    }
  }
  if (fault.empty()) return {};
  return Status::error("--shuffle " + list + ": " + fault + "; name each of the rows 0 to " +
                       std::to_string(rows - 1) + " once, in the new order");
}

}  // namespace

Status apply_changes(const std::vector<std::string>& texts, Problem* problem) {
  std::vector<Change> changes;
  for (const std::string& text : texts) {
    Change change;
    ATTN_RETURN_IF_ERROR(read_change(text, problem, &change));
    ATTN_RETURN_IF_ERROR(check_once(changes, change));
    changes.push_back(std::move(change));
  }
  for (Change& change : changes) {
    Matrix* matrix = matrix_of(change.matrix, problem);
    if (matrix == nullptr) {
      problem->replaced.push_back({change.matrix[0], change.row, std::move(change.numbers)});
    } else {
      (*matrix)[change.row] = std::move(change.numbers);
    }
  }
  return {};
}

Status shuffle(const std::vector<std::int64_t>& order, Problem* problem) {
  const std::vector<std::string> tokens = problem->tokens;
  ATTN_RETURN_IF_ERROR(check_order(order, static_cast<std::int64_t>(tokens.size())));
  for (std::size_t i = 0; i < order.size(); ++i) problem->tokens[i] = tokens[order[i]];
  for (Matrix* matrix : {&problem->x, &problem->q, &problem->k, &problem->v}) reorder(order, matrix);
  for (auto& replacement : problem->replaced) {
    const auto place = std::find(order.begin(), order.end(), replacement.row);
    if (place != order.end()) replacement.row = place - order.begin();
  }
  return {};
}

}  // namespace attn::explain

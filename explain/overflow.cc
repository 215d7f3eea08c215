// Finding rows that overflowed.
#include "explain/overflow.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reference/row.h"

namespace attn::explain {
namespace {

using reference::HeadTrace;
using reference::Matrix;

// Whether keys are visible depends on options and sizes alone, so zeros will do for q, k and v.
class Visibility {
 public:
  Visibility(const reference::Problem& problem, std::int64_t heads, std::int64_t rows)
      : zeros_(static_cast<std::size_t>(heads * rows)),
        view_(zeros_.data(), DType::f64, {1, heads, rows, 1}),
        inputs_(view_, view_, view_, problem.options) {}

  bool operator()(std::int64_t head, std::int64_t query, std::int64_t key) const {
    const reference::Sequence& sequence = inputs_.sequences.front();
    return query < sequence.queries && key < sequence.keys &&
           reference::is_visible(inputs_, sequence, head, query, key);
  }

 private:
  std::vector<double> zeros_;
  TensorView view_;
  reference::Inputs inputs_;
};

bool has_overflowed(const HeadTrace& head, std::size_t query, std::size_t key) {
  const auto is_finite = [&](const Matrix& table) { return table.empty() || std::isfinite(table[query][key]); };
  return !(is_finite(head.scores) && is_finite(head.scaled) && is_finite(head.softcapped) &&
           is_finite(head.biased) && is_finite(head.masked));
}

}  // namespace

std::vector<std::size_t> rows_of_overflowed_scores(const reference::Problem& problem, const reference::Trace& trace,
                                                   const HeadTrace& head) {
  const Visibility is_visible(problem, static_cast<std::int64_t>(trace.heads.size()),
                              static_cast<std::int64_t>(trace.tokens.size()));
  const auto index = static_cast<std::int64_t>(&head - trace.heads.data());
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < head.masked.size(); ++i) {
    for (std::size_t j = 0; j < head.masked[i].size(); ++j) {
      if (!has_overflowed(head, i, j)) continue;
      if (!is_visible(index, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j))) continue;
      rows.push_back(i);
      break;
    }
  }
  return rows;
}

std::vector<std::size_t> rows_not_finite(const Matrix& matrix) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    if (!std::all_of(matrix[i].begin(), matrix[i].end(), [](double number) { return std::isfinite(number); })) {
      rows.push_back(i);
    }
  }
  return rows;
}

}  // namespace attn::explain

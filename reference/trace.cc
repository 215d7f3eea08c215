// Working a small problem out by hand: projections, then each head through the recipe of row.cc, keeping
// everything.
#include "reference/trace.h"
#include "reference/cache_steps.h"

#include <cmath>
#include <limits>
#include <utility>

#include "reference/inputs.h"
#include "reference/reference.h"
#include "reference/row.h"
#include "reference/tiles.h"

namespace attn::reference {
namespace {

std::size_t columns_of(const Matrix& matrix) { return matrix.empty() ? 0 : matrix.front().size(); }

Status check_matrix(const char* name, const Matrix& matrix, std::size_t rows, const std::string& why_rows) {
  const std::string argument = std::string(name) + ": ";
  for (std::size_t r = 0; r < matrix.size(); ++r) {
    if (matrix[r].size() == columns_of(matrix)) continue;
    return Status::error(argument + "row " + std::to_string(r) + " has " + std::to_string(matrix[r].size()) +
                         " numbers, but row 0 has " + std::to_string(columns_of(matrix)) +
                         "; all rows must be equally long");
  }
  if (matrix.size() != rows) {
    return Status::error(argument + std::to_string(matrix.size()) + " rows, but " + std::to_string(rows) +
                         " are needed, " + why_rows);
  }
  if (columns_of(matrix) == 0) return Status::error(argument + "no columns; each row needs at least one number");
  return {};
}

Status check_widths(const Trace& trace, std::int64_t heads) {
  if (columns_of(trace.q) != columns_of(trace.k)) {
    return Status::error("k: " + std::to_string(columns_of(trace.k)) + " columns, but q has " +
                         std::to_string(columns_of(trace.q)) + "; a score is q·k, so both must be equal");
  }
  for (const Matrix* matrix : {&trace.q, &trace.v}) {
    const std::int64_t columns = static_cast<std::int64_t>(columns_of(*matrix));
    if (heads >= 1 && columns % heads == 0) continue;
    return Status::error("heads: " + std::to_string(heads) + ", but " +
                         (matrix == &trace.q ? "q and k have " : "v has ") + std::to_string(columns) +
                         " columns; heads must be at least 1 and split them evenly");
  }
  return {};
}

// [N, C]·[C, D]
Matrix multiply(const Matrix& left, const Matrix& right) {
  Matrix product(left.size(), std::vector<double>(columns_of(right), 0.0));
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t c = 0; c < right.size(); ++c)
      for (std::size_t d = 0; d < product[i].size(); ++d) product[i][d] += left[i][c] * right[c][d];
  return product;
}

Status project(const Problem& problem, Trace* trace) {
  const std::string by_token = "one for each token";
  const std::size_t tokens = problem.tokens.size();
  if (problem.x.empty()) {
    ATTN_RETURN_IF_ERROR(check_matrix("q", problem.q, tokens, by_token));
    ATTN_RETURN_IF_ERROR(check_matrix("k", problem.k, tokens, by_token));
    ATTN_RETURN_IF_ERROR(check_matrix("v", problem.v, tokens, by_token));
    trace->q = problem.q;
    trace->k = problem.k;
    trace->v = problem.v;
    return {};
  }
  const std::string by_column = "one for each column of x";
  const std::size_t embedding = columns_of(problem.x);
  ATTN_RETURN_IF_ERROR(check_matrix("x", problem.x, tokens, by_token));
  ATTN_RETURN_IF_ERROR(check_matrix("wq", problem.wq, embedding, by_column));
  ATTN_RETURN_IF_ERROR(check_matrix("wk", problem.wk, embedding, by_column));
  ATTN_RETURN_IF_ERROR(check_matrix("wv", problem.wv, embedding, by_column));
  trace->x = problem.x;
  trace->wq = problem.wq;
  trace->wk = problem.wk;
  trace->wv = problem.wv;
  trace->q = multiply(problem.x, problem.wq);
  trace->k = multiply(problem.x, problem.wk);
  trace->v = multiply(problem.x, problem.wv);
  return {};
}

Status replace_rows(const Problem& problem, Trace* trace) {
  for (const Replacement& replacement : problem.replaced) {
    Matrix& matrix = replacement.matrix == 'q' ? trace->q : replacement.matrix == 'k' ? trace->k : trace->v;
    const std::string argument = std::string(1, replacement.matrix) + "[" + std::to_string(replacement.row) + "]: ";
    if (replacement.row < 0 || replacement.row >= static_cast<std::int64_t>(matrix.size())) {
      return Status::error(argument + "there are " + std::to_string(matrix.size()) + " rows, counted from 0");
    }
    if (replacement.values.size() != columns_of(matrix)) {
      return Status::error(argument + std::to_string(replacement.values.size()) + " numbers given, but a row has " +
                           std::to_string(columns_of(matrix)));
    }
    matrix[replacement.row] = replacement.values;
  }
  return {};
}

std::vector<double> flatten(const Matrix& matrix) {
  std::vector<double> numbers;
  for (const auto& row : matrix) numbers.insert(numbers.end(), row.begin(), row.end());
  return numbers;
}

// [1, H, N, D]: splitting columns into heads takes nothing but strides.
TensorView heads_view(const std::vector<double>& numbers, std::int64_t rows, std::int64_t heads) {
  const std::int64_t width = static_cast<std::int64_t>(numbers.size()) / rows;
  return {numbers.data(), DType::f64, {1, heads, rows, width / heads}, {rows * width, width / heads, width, 1}};
}

Matrix columns_of_head(const Array& array, std::int64_t head) {
  Matrix matrix;
  for (std::int64_t r = 0; r < array.shape[2]; ++r) {
    matrix.emplace_back(array.row(0, head, r), array.row(0, head, r) + array.shape[3]);
  }
  return matrix;
}

// One row of every table up to the masked scores.
void trace_scores(const Inputs& inputs, std::int64_t head, std::int64_t i, HeadTrace* trace) {
  const Sequence& sequence = inputs.sequences.front();
  const AttentionOptions& options = inputs.options;
  for (Matrix* table : {&trace->scores, &trace->scaled, &trace->masked}) table->emplace_back();
  if (options.softcap) trace->softcapped.emplace_back();
  if (options.bias || options.alibi) trace->biased.emplace_back();

  for (std::int64_t j = 0; j < inputs.key.shape[2]; ++j) {
    double product = 0;
    for (std::size_t d = 0; d < trace->q[i].size(); ++d) product += trace->q[i][d] * trace->k[j][d];
    const double scaled = product * inputs.scale;
    const double finished = score(inputs, sequence, head, i, j);
    const bool visible = i < sequence.queries && j < sequence.keys && is_visible(inputs, sequence, head, i, j);
    trace->scores[i].push_back(product);
    trace->scaled[i].push_back(scaled);
    if (options.softcap) trace->softcapped[i].push_back(*options.softcap * std::tanh(scaled / *options.softcap));
    if (options.bias || options.alibi) trace->biased[i].push_back(finished);
    trace->masked[i].push_back(visible ? finished : -std::numeric_limits<double>::infinity());
  }
}

// What the judge says of this head: weights, outputs, lse.
void take_result(const Result& result, std::int64_t head, HeadTrace* trace) {
  for (std::int64_t i = 0; i < result.queries; ++i) {
    const std::int64_t row = head * result.queries + i;
    const double* weights = result.weights.data() + row * result.keys;
    const double* out = result.out.data() + row * result.value_dim;
    trace->weights.emplace_back(weights, weights + result.keys);
    trace->out.emplace_back(out, out + result.value_dim);
    trace->lse.push_back(result.lse[row]);
  }
}

HeadTrace trace_head(const Inputs& inputs, const Result& result, std::int64_t head, std::int64_t tile) {
  HeadTrace trace;
  trace.q = columns_of_head(inputs.query, head);
  trace.k = columns_of_head(inputs.key, head);
  trace.v = columns_of_head(inputs.value, head);
  take_result(result, head, &trace);
  const Sequence& sequence = inputs.sequences.front();
  for (std::int64_t i = 0; i < result.queries; ++i) {
    trace_scores(inputs, head, i, &trace);
    const Row row = i < sequence.queries ? attend(inputs, sequence, head, i) : Row{};
    trace.max.push_back(row.max);
    if (inputs.options.sinks) trace.sink_weights.push_back(row.sink_weight);
    if (tile > 0) trace.tiles.push_back(work_in_tiles(row, trace.v, tile));
  }
  return trace;
}

Status trace_cache(const TensorView& q, const TensorView& k, const TensorView& v, const AttentionOptions& options,
                   Trace* trace) {
  for (std::size_t head = 0; head < trace->heads.size(); ++head) {
    std::int64_t sees_later = -1;
    trace->heads[head].steps = work_through_cache(q, k, v, options, static_cast<std::int64_t>(head), &sees_later);
    if (sees_later < 0) continue;
    return Status::error("cache: " + trace->tokens[static_cast<std::size_t>(sees_later)] +
                         " sees a later token, which a cache does not have yet when it is its turn; "
                         "hide later tokens, as --causal does");
  }
  return {};
}

}  // namespace

Status trace(const Problem& problem, Trace* trace) {
  if (problem.tokens.empty()) return Status::error("tokens: none given; at least one is needed");
  if (problem.tile < 0)
    return Status::error("tiles: " + std::to_string(problem.tile) + "; a tile holds 1 key or more");
  Trace work;
  work.tokens = problem.tokens;
  ATTN_RETURN_IF_ERROR(project(problem, &work));
  ATTN_RETURN_IF_ERROR(replace_rows(problem, &work));
  ATTN_RETURN_IF_ERROR(check_widths(work, problem.heads));

  const std::int64_t rows = static_cast<std::int64_t>(problem.tokens.size());
  const std::vector<double> q = flatten(work.q), k = flatten(work.k), v = flatten(work.v);
  const TensorView queries = heads_view(q, rows, problem.heads);
  const TensorView keys = heads_view(k, rows, problem.heads);
  const TensorView values = heads_view(v, rows, problem.heads);
  const Inputs inputs(queries, keys, values, problem.options);
  const Result result = attention(queries, keys, values, problem.options, /*keep_weights=*/true);

  work.scale = inputs.scale;
  work.out.assign(rows, {});
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    work.heads.push_back(trace_head(inputs, result, head, problem.tile));
    const Matrix& out = work.heads.back().out;
    for (std::int64_t i = 0; i < rows; ++i) work.out[i].insert(work.out[i].end(), out[i].begin(), out[i].end());
  }
  if (problem.cache) ATTN_RETURN_IF_ERROR(trace_cache(queries, keys, values, problem.options, &work));
  *trace = std::move(work);
  return {};
}

}  // namespace attn::reference

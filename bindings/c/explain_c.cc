// Attention worked by hand, for C.
#include "bindings/c/convert.h"
#include "bindings/c/text.h"
#include "explain/explanation.h"
#include "explain/specification.h"
#include "reference/inputs.h"
#include "reference/trace.h"

using attn::Status;
using attn::c::input;
using attn::reference::Matrix;
using attn::reference::Problem;
using attn::reference::Trace;

namespace {

// A table that people can read: [N, D], or [H, N, D] with the heads side by side.
Status read_matrix(const char* name, const attn_tensor* tensor, Matrix* matrix, std::int64_t* heads) {
  const attn::TensorView view = input(tensor);
  const std::string about = std::string(name) + ": ";
  if (view.rank < 2 || view.rank > 3 || view.dtype == attn::DType::boolean || !view.data)
    return Status::error(about + "no table of numbers of two or three dimensions, [N, D] or [H, N, D]; give one");
  std::uint64_t rows = 1, columns = 1;
  for (int d = 0; d < view.rank; ++d) {
    const std::int64_t size = view.shape[static_cast<std::size_t>(d)];
    std::uint64_t& side = d == view.rank - 2 ? rows : columns;
    if (size < 1 || static_cast<std::uint64_t>(size) > attn::explain::kMostColumns)
      return Status::error(about + "a dimension of size " + std::to_string(size) + "; give from 1 to " +
                           std::to_string(attn::explain::kMostColumns));
    side *= static_cast<std::uint64_t>(size);
  }
  if (rows > attn::explain::kMostTokens && heads)
    return Status::error(about + std::to_string(rows) + " rows; at most " +
                         std::to_string(attn::explain::kMostTokens) + " can be read");
  if (columns > attn::explain::kMostColumns)
    return Status::error(about + std::to_string(columns) + " columns in all; at most " +
                         std::to_string(attn::explain::kMostColumns) + " can be read");
  const attn::reference::Array numbers = attn::reference::read(view);
  matrix->assign(rows, {});
  for (std::int64_t h = 0; h < numbers.shape[1]; ++h) {
    for (std::int64_t i = 0; i < numbers.shape[2]; ++i) {
      const double* row = numbers.row(0, h, i);
      auto& joined = (*matrix)[static_cast<std::size_t>(i)];
      joined.insert(joined.end(), row, row + numbers.shape[3]);
    }
  }
  if (heads) *heads = numbers.shape[1];
  return {};
}

Status read_queries_keys_values(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v,
                                Problem* problem) {
  std::int64_t heads[3] = {};
  ATTN_RETURN_IF_ERROR(read_matrix("q", q, &problem->q, &heads[0]));
  ATTN_RETURN_IF_ERROR(read_matrix("k", k, &problem->k, &heads[1]));
  ATTN_RETURN_IF_ERROR(read_matrix("v", v, &problem->v, &heads[2]));
  if (heads[1] != heads[0] || heads[2] != heads[0])
    return Status::error("k: " + std::to_string(heads[1]) + " heads, v " + std::to_string(heads[2]) +
                         ", but q has " + std::to_string(heads[0]) + "; a lesson needs as many of each");
  if (problem->q.size() != problem->k.size())
    return Status::error("k: " + std::to_string(problem->k.size()) + " rows, but q has " +
                         std::to_string(problem->q.size()) + "; a lesson is about tokens that have both");
  problem->heads = heads[0];
  return {};
}

// Embeddings and their three matrices; `heads` splits the columns.
Status read_embeddings(const attn_explain_options& read, Problem* problem) {
  if (!read.x || !read.wq || !read.wk || !read.wv)
    return Status::error("q, k, v: not given, and neither are all of x, wq, wk, wv; give one or the other");
  std::int64_t unused;
  ATTN_RETURN_IF_ERROR(read_matrix("x", read.x, &problem->x, &unused));
  ATTN_RETURN_IF_ERROR(read_matrix("wq", read.wq, &problem->wq, nullptr));
  ATTN_RETURN_IF_ERROR(read_matrix("wk", read.wk, &problem->wk, nullptr));
  ATTN_RETURN_IF_ERROR(read_matrix("wv", read.wv, &problem->wv, nullptr));
  problem->heads = read.heads;
  return {};
}

// The library says whether options fit: by shapes and dtypes alone, numbers do not matter.
Status check_options(const Trace& shapes, attn::DType dtype, const attn::AttentionOptions& options) {
  const auto& head = shapes.heads.front();
  const auto heads = static_cast<std::int64_t>(shapes.heads.size());
  const auto rows = static_cast<std::int64_t>(shapes.tokens.size());
  const auto key_dim = static_cast<std::int64_t>(head.q.front().size());
  const auto value_dim = static_cast<std::int64_t>(head.v.front().size());
  const std::vector<double> numbers(static_cast<std::size_t>(rows * heads * std::max(key_dim, value_dim)));
  const attn::TensorView query(numbers.data(), dtype, {1, heads, rows, key_dim});
  const attn::TensorView value(numbers.data(), dtype, {1, heads, rows, value_dim});
  attn::Plan unused;
  return attn::plan(query, query, value, options, &unused);
}

Status name_tokens(const char* const* tokens, Problem* problem) {
  const std::size_t rows = std::max(problem->q.size(), problem->x.size());
  for (std::size_t i = 0; i < rows; ++i) {
    if (tokens && !tokens[i]) return Status::error("tokens: number " + std::to_string(i) + " is NULL; name all");
    problem->tokens.push_back(tokens ? tokens[i] : std::to_string(i));
  }
  return {};
}

Status explain(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v,
               const attn::AttentionOptions& options, const attn_explain_options& read, std::string* text) {
  const auto format = attn::explain::format_named(read.format ? read.format : "text");
  if (!format)
    return Status::error("format: \"" + std::string(read.format) +
                         "\" is none; give text, markdown, latex or json");
  const attn::Mistake* mistake = read.mistake ? attn::find_mistake(read.mistake) : nullptr;
  if (read.mistake && !mistake)
    return Status::error("mistake: \"" + std::string(read.mistake) +
                         "\" is none of the catalogue, as scale-missing is one; see the list of mistakes");
  if (read.tile < 0) return Status::error("tile: " + std::to_string(read.tile) + " keys; give 1 or more, or 0");

  Problem problem;
  const bool from_embeddings = !q && !k && !v;
  if (!from_embeddings && !(q && k && v)) return attn::c::missing(!q ? "q" : !k ? "k" : "v");
  ATTN_RETURN_IF_ERROR(from_embeddings ? read_embeddings(read, &problem)
                                       : read_queries_keys_values(q, k, v, &problem));
  ATTN_RETURN_IF_ERROR(name_tokens(read.tokens, &problem));
  Trace trace;
  ATTN_RETURN_IF_ERROR(attn::reference::trace(problem, &trace));
  ATTN_RETURN_IF_ERROR(check_options(trace, input(from_embeddings ? read.x : q).dtype, options));
  problem.options = options;
  problem.tile = read.tile;
  problem.cache = read.cache != 0;
  ATTN_RETURN_IF_ERROR(attn::reference::trace(problem, &trace));
  *text = attn::explain::explanation(*format, problem, trace, mistake);
  return {};
}

}  // namespace

void attn_explain_options_init(attn_explain_options* options, size_t size) {
  attn_explain_options defaults{};
  defaults.heads = 1;
  attn::c::init_sized(defaults, size, options);
}

int attn_explain(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_options* options,
                 const attn_explain_options* explain_options, attn_text** text) {
  return attn::c::with_options(options, {{"text", text}}, [&](const attn::AttentionOptions& read) -> Status {
    attn_explain_options defaults, known;
    attn_explain_options_init(&defaults, sizeof defaults);
    ATTN_RETURN_IF_ERROR(attn::c::read_sized("explain_options", explain_options, defaults, &known));
    std::string made;
    ATTN_RETURN_IF_ERROR(explain(q, k, v, read, known, &made));
    *text = new attn_text{std::move(made)};
    return {};
  });
}

// Rows, rotated.
#include "attn/rope.h"

#include <numeric>
#include <utility>
#include <vector>

#include "attn/executor.h"
#include "src/arithmetic/float_environment.h"
#include "src/check_outputs.h"
#include "src/check_views.h"
#include "src/elements.h"
#include "src/sentence.h"

namespace attn {
namespace {

// What the tasks of one call share; a task is a row position of a sequence, in all heads.
struct Rotation {
  View4 x;
  OutputView4 out;
  RopeLayout layout = RopeLayout::half_split;
  std::int64_t pairs = 0;
  RopeTable angles;  // a row for each row of x, or for those of one sequence where all have the same

  std::int64_t angle_row(std::int64_t b, std::int64_t i) const {
    return angles.positions == x.shape[2] ? i : b * x.shape[2] + i;
  }
};

float number(const View4& view, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
  return load_element<float>(view.at(b, h, i, c), view.dtype);
}

void rotate_row(const Rotation& r, std::int64_t b, std::int64_t h, std::int64_t i, const float* cos,
                const float* sin) {
  const bool adjacent = r.layout == RopeLayout::adjacent_pairs;
  for (std::int64_t p = 0; p < r.pairs; ++p) {
    const std::int64_t first = adjacent ? 2 * p : p, second = adjacent ? 2 * p + 1 : p + r.pairs;
    const float x = number(r.x, b, h, i, first), y = number(r.x, b, h, i, second);
    store_element(r.out.at(b, h, i, first), r.out.dtype, x * cos[p] - y * sin[p]);
    store_element(r.out.at(b, h, i, second), r.out.dtype, x * sin[p] + y * cos[p]);
  }
  for (std::int64_t c = 2 * r.pairs; c < r.x.shape[3]; ++c)
    store_element(r.out.at(b, h, i, c), r.out.dtype, number(r.x, b, h, i, c));
}

void rotate_position(void* context, std::int64_t index, int /*worker*/) {
  const auto& r = *static_cast<const Rotation*>(context);
  const DefaultFloatEnvironment environment;
  const std::int64_t b = index / r.x.shape[2], i = index % r.x.shape[2], row = r.angle_row(b, i) * r.pairs;
  for (std::int64_t h = 0; h < r.x.shape[1]; ++h)
    rotate_row(r, b, h, i, r.angles.cos.data() + row, r.angles.sin.data() + row);
}

bool is_same_memory(const View4& x, const OutputView4& out) {
  return x.data == out.data && x.dtype == out.dtype && x.shape == out.shape && x.strides == out.strides;
}

Status check_tensors(const TensorView& x, const OutputView& out, Rotation* r) {
  if (x.rank < 2 || x.rank > 4)
    return error("x: ", x.rank, " dimensions; [N, D], [heads, N, D] or [batch, heads, N, D] is needed");
  if (!is_float(x.dtype) || x.dtype == DType::f64)
    return error("x: dtype ", name_of(x.dtype), "; f32, f16 or bf16 is needed");
  ATTN_RETURN_IF_ERROR(check_memory("x", x));
  r->x = aligned_right<const std::byte>(x, 4);
  ATTN_RETURN_IF_ERROR(check_output("out", out, r->x.shape, DType::f32, &r->out));
  return is_same_memory(r->x, r->out) ? Status() : check_disjoint("out", r->out, "x", r->x);
}

Status check_positions(std::span<const std::int64_t> positions, const View4& x) {
  const auto rows = static_cast<std::size_t>(x.shape[2]), all = static_cast<std::size_t>(x.shape[0]) * rows;
  if (positions.empty() || positions.size() == rows || positions.size() == all) return {};
  return error("positions: ", positions.size(), " numbers for ", x.shape[0], " sequences of ", rows,
               " rows; give one a row, for all sequences or for each");
}

void run(Rotation* r, Executor* chosen) {
  Executor& executor = chosen ? *chosen : default_executor();
  const std::int64_t tasks = r->x.shape[0] * r->x.shape[2];
  // A number takes about as long as 50 multiply-adds.
  const double work = 50.0 * static_cast<double>(tasks) * static_cast<double>(r->x.shape[1] * r->x.shape[3]);
  if (r->x.shape[1] == 0) return;
  if (work >= executor.least_work()) return executor.run(tasks, rotate_position, r);
  for (std::int64_t task = 0; task < tasks; ++task) rotate_position(r, task, 0);
}

// A table of the caller's: [P, R/2], or [B, N, R/2].
Status check_table(const char* name, const TensorView& table, const Rotation& r, View4* view) {
  if (table.rank != 2 && table.rank != 3)
    return error(name, ": ", table.rank, " dimensions; [positions, R/2] or [batch, N, R/2] is needed");
  if (!is_float(table.dtype) || table.dtype == DType::f64)
    return error(name, ": dtype ", name_of(table.dtype), "; f32, f16 or bf16 is needed");
  ATTN_RETURN_IF_ERROR(check_memory(name, table));
  const std::int64_t columns = table.shape[table.rank - 1];
  if (columns != r.pairs) {
    return error(name, ": ", columns, " columns, but ", 2 * r.pairs,
                 " numbers of a row turn; a column is needed for each pair of them");
  }
  *view = aligned_right<const std::byte>(table, 4);
  if (table.rank == 3 && (table.shape[0] != r.x.shape[0] || table.shape[1] != r.x.shape[2])) {
    return error(name, ": shape ", list_of(shape_of(table)), ", but x has ", r.x.shape[0], " sequences of ",
                 r.x.shape[2], " rows; give one row of angles for each");
  }
  return {};
}

Status check_rows(std::span<const std::int64_t> positions, std::int64_t table_rows, const View4& x) {
  ATTN_RETURN_IF_ERROR(check_positions(positions, x));
  if (positions.empty() && x.shape[2] > table_rows) {
    return error("cos: ", table_rows, " positions, but x has ", x.shape[2], " rows; a longer table is needed");
  }
  for (const std::int64_t position : positions) {
    if (position < 0 || position >= table_rows)
      return error("positions: ", position, "; the table has positions 0 to ", table_rows - 1);
  }
  return {};
}

// One row of the caller's table.
void add_angles(const View4& cos, const View4& sin, std::int64_t block, std::int64_t row, RopeTable* angles) {
  for (std::int64_t p = 0; p < angles->pairs; ++p) {
    angles->cos.push_back(number(cos, 0, block, row, p));
    angles->sin.push_back(number(sin, 0, block, row, p));
  }
  ++angles->positions;
}

std::vector<std::int64_t> counted(std::int64_t rows) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(rows));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

}  // namespace

Status rotate(const TensorView& x, const OutputView& out, std::span<const std::int64_t> positions,
              const RopeOptions& options, Executor* executor) {
  const DefaultFloatEnvironment environment;
  Rotation r;
  r.layout = options.layout;
  ATTN_RETURN_IF_ERROR(check_tensors(x, out, &r));
  ATTN_RETURN_IF_ERROR(check_positions(positions, r.x));
  const std::vector<std::int64_t> all = positions.empty() ? counted(r.x.shape[2]) : std::vector<std::int64_t>();
  ATTN_RETURN_IF_ERROR(rope_table(options, r.x.shape[3], positions.empty() ? all : positions, &r.angles));
  r.pairs = r.angles.pairs;
  run(&r, executor);
  return {};
}

Status rotate(const TensorView& x, const OutputView& out, const TensorView& cos, const TensorView& sin,
              std::span<const std::int64_t> positions, const RopeOptions& options, Executor* executor) {
  const DefaultFloatEnvironment environment;
  Rotation r;
  r.layout = options.layout;
  ATTN_RETURN_IF_ERROR(check_tensors(x, out, &r));
  std::vector<double> frequencies;  // for its rules about rotary_dim
  ATTN_RETURN_IF_ERROR(rope_frequencies({.rotary_dim = options.rotary_dim}, r.x.shape[3], &frequencies));
  r.pairs = r.angles.pairs = static_cast<std::int64_t>(frequencies.size());
  View4 cosines, sines;
  ATTN_RETURN_IF_ERROR(check_table("cos", cos, r, &cosines));
  ATTN_RETURN_IF_ERROR(check_table("sin", sin, r, &sines));
  if (cosines.shape != sines.shape || cos.rank != sin.rank) {
    return error("sin: shape ", list_of(shape_of(sin)), ", but cos has ", list_of(shape_of(cos)),
                 "; both must be equal");
  }
  if (cos.rank == 3) {
    if (!positions.empty()) {
      return error(
          "positions: given with a table [batch, N, R/2], which has a row for each query already; leave them out");
    }
    for (std::int64_t b = 0; b < r.x.shape[0]; ++b) {
      for (std::int64_t i = 0; i < r.x.shape[2]; ++i) add_angles(cosines, sines, b, i, &r.angles);
    }
  } else {
    ATTN_RETURN_IF_ERROR(check_rows(positions, cosines.shape[2], r.x));
    const std::vector<std::int64_t> all = positions.empty() ? counted(r.x.shape[2]) : std::vector<std::int64_t>();
    for (const std::int64_t position : positions.empty() ? std::span<const std::int64_t>(all) : positions)
      add_angles(cosines, sines, 0, position, &r.angles);
  }
  run(&r, executor);
  return {};
}

}  // namespace attn

// Rows, rotated.
#include "attn/rope.h"

#include <exception>
#include <numeric>
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
  RopeLayout layout;
  const RopeTable& table;

  std::int64_t table_row(std::int64_t b, std::int64_t i) const {
    return table.positions == x.shape[2] ? i : b * x.shape[2] + i;
  }
};

float number(const View4& view, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t c) {
  return load_element<float>(view.at(b, h, i, c), view.dtype);
}

void rotate_row(const Rotation& r, std::int64_t b, std::int64_t h, std::int64_t i, const float* cos,
                const float* sin) {
  const bool adjacent = r.layout == RopeLayout::adjacent_pairs;
  for (std::int64_t p = 0; p < r.table.pairs; ++p) {
    const std::int64_t first = adjacent ? 2 * p : p, second = adjacent ? 2 * p + 1 : p + r.table.pairs;
    const float x = number(r.x, b, h, i, first), y = number(r.x, b, h, i, second);
    store_element(r.out.at(b, h, i, first), r.out.dtype, x * cos[p] - y * sin[p]);
    store_element(r.out.at(b, h, i, second), r.out.dtype, x * sin[p] + y * cos[p]);
  }
  for (std::int64_t c = 2 * r.table.pairs; c < r.x.shape[3]; ++c)
    store_element(r.out.at(b, h, i, c), r.out.dtype, number(r.x, b, h, i, c));
}

void rotate_position(void* context, std::int64_t index, int /*worker*/) {
  const auto& r = *static_cast<const Rotation*>(context);
  const DefaultFloatEnvironment environment;
  const std::int64_t b = index / r.x.shape[2], i = index % r.x.shape[2], row = r.table_row(b, i) * r.table.pairs;
  for (std::int64_t h = 0; h < r.x.shape[1]; ++h)
    rotate_row(r, b, h, i, r.table.cos.data() + row, r.table.sin.data() + row);
}

void run(Rotation& r, Executor& executor) {
  const std::int64_t tasks = r.x.shape[0] * r.x.shape[2];
  // A number takes about as long as 50 multiply-adds.
  const double work = 50.0 * static_cast<double>(tasks) * static_cast<double>(r.x.shape[1] * r.x.shape[3]);
  if (work >= executor.least_work()) return executor.run(tasks, rotate_position, &r);
  for (std::int64_t task = 0; task < tasks; ++task) rotate_position(&r, task, 0);
}

bool is_same_memory(const View4& x, const OutputView4& out) {
  return x.data == out.data && x.dtype == out.dtype && x.shape == out.shape && x.strides == out.strides;
}

Status check_numbers(const char* name, const TensorView& view) {
  if (!is_float(view.dtype) || view.dtype == DType::f64)
    return error(name, ": dtype ", name_of(view.dtype), "; f32, f16 or bf16 is needed");
  return check_memory(name, view);
}

Status check_x(const TensorView& x, View4* result) {
  ATTN_RETURN_IF_ERROR(check_rank("x", x));
  ATTN_RETURN_IF_ERROR(check_numbers("x", x));
  *result = aligned_right<const std::byte>(x, 4);
  return {};
}

Status check_table(const RopeTable& table, const View4& x) {
  const std::int64_t rows = x.shape[2], all = x.shape[0] * rows;
  if (table.positions != rows && table.positions != all) {
    return error("table: ", table.positions, " positions for ", x.shape[0], " sequences of ", rows,
                 " rows; give one a row, for all sequences or for each");
  }
  if (table.pairs < 1 || table.pairs > x.shape[3] / 2)
    return error("table: ", table.pairs, " pairs, but rows have ", x.shape[3],
                 " numbers; a pair takes two of them");
  const auto numbers = static_cast<std::size_t>(table.positions * table.pairs);
  if (table.cos.size() == numbers && table.sin.size() == numbers) return {};
  return error("table: ", table.cos.size(), " and ", table.sin.size(), " numbers in cos and sin, but ", numbers,
               " are positions × pairs; make it with rope_table()");
}

Status check_positions(std::span<const std::int64_t> positions, const View4& x) {
  const auto rows = static_cast<std::size_t>(x.shape[2]), all = static_cast<std::size_t>(x.shape[0]) * rows;
  if (positions.empty() || positions.size() == rows || positions.size() == all) return {};
  return error("positions: ", positions.size(), " numbers for ", x.shape[0], " sequences of ", rows,
               " rows; give one a row, for all sequences or for each");
}

bool has_elements(const View4& x) { return x.shape[0] > 0 && x.shape[1] > 0 && x.shape[2] > 0; }

// 0 … N − 1, where no positions are given.
Status count_positions(const View4& x, std::span<const std::int64_t>* positions,
                       std::vector<std::int64_t>* counted) {
  if (!positions->empty()) return {};
  try {
    counted->resize(static_cast<std::size_t>(x.shape[2]));
  } catch (const std::exception&) {
    return error("x: positions of ", x.shape[2], " rows could not be had; rotate fewer at a time");
  }
  std::iota(counted->begin(), counted->end(), 0);
  *positions = *counted;
  return {};
}

// cos or sin of the caller's: [P, R/2], or [B, N, R/2].
Status check_angles(const char* name, const TensorView& angles, const View4& x, View4* view) {
  if (angles.rank != 2 && angles.rank != 3)
    return error(name, ": ", angles.rank, " dimensions; [positions, R/2] or [batch, N, R/2] is needed");
  ATTN_RETURN_IF_ERROR(check_numbers(name, angles));
  const std::int64_t columns = angles.shape[angles.rank - 1];
  if (columns < 1 || columns > x.shape[3] / 2) {
    return error(name, ": ", columns, " columns, one for each pair that turns, but rows have ", x.shape[3],
                 " numbers; give 1 to ", x.shape[3] / 2);
  }
  *view = aligned_right<const std::byte>(angles, 4);
  if (angles.rank == 3 && (angles.shape[0] != x.shape[0] || angles.shape[1] != x.shape[2])) {
    return error(name, ": shape ", list_of(shape_of(angles)), ", but x has ", x.shape[0], " sequences of ",
                 x.shape[2], " rows; give one row of angles for each");
  }
  return {};
}

Status check_rows(std::span<const std::int64_t> positions, std::int64_t rows, const View4& x) {
  ATTN_RETURN_IF_ERROR(check_positions(positions, x));
  if (positions.empty() && x.shape[2] > rows)
    return error("cos: ", rows, " positions, but x has ", x.shape[2], " rows; a longer table is needed");
  for (const std::int64_t position : positions) {
    if (position < 0 || position >= rows)
      return error("positions: ", position, "; the table has positions 0 to ", rows - 1);
  }
  return {};
}

// The caller's angles as a table: those of the positions, or all rows of [B, N, R/2] in order.
Status gather(const View4& cos, const View4& sin, std::span<const std::int64_t> positions, RopeTable* table) {
  table->pairs = cos.shape[3];
  const auto add = [&](std::int64_t block, std::int64_t row) {
    for (std::int64_t p = 0; p < table->pairs; ++p) {
      table->cos.push_back(number(cos, 0, block, row, p));
      table->sin.push_back(number(sin, 0, block, row, p));
    }
    ++table->positions;
  };
  try {
    for (const std::int64_t position : positions) add(0, position);
    for (std::int64_t b = 0; positions.empty() && b < cos.shape[1]; ++b) {
      for (std::int64_t i = 0; i < cos.shape[2]; ++i) add(b, i);
    }
  } catch (const std::exception&) {
    return error("cos: memory for the angles of all rows could not be had; rotate fewer at a time");
  }
  return {};
}

}  // namespace

Status rotate_by_table(const TensorView& x, const OutputView& out, const RopeTable& table, RopeLayout layout,
                       Executor* executor) {
  const DefaultFloatEnvironment environment;
  if (layout > RopeLayout::adjacent_pairs)
    return error("layout: ", static_cast<int>(layout), "; it is half_split or adjacent_pairs");
  Rotation r{.layout = layout, .table = table};
  ATTN_RETURN_IF_ERROR(check_x(x, &r.x));
  ATTN_RETURN_IF_ERROR(check_output("out", out, r.x.shape, DType::f32, &r.out));
  if (!is_same_memory(r.x, r.out)) ATTN_RETURN_IF_ERROR(check_disjoint("out", r.out, "x", r.x));
  if (!has_elements(r.x)) return {};
  ATTN_RETURN_IF_ERROR(check_table(table, r.x));
  run(r, executor ? *executor : default_executor());
  return {};
}

Status rotate(const TensorView& x, const OutputView& out, std::span<const std::int64_t> positions,
              const RopeOptions& options, Executor* executor) {
  const DefaultFloatEnvironment environment;
  View4 rows;
  ATTN_RETURN_IF_ERROR(check_x(x, &rows));
  ATTN_RETURN_IF_ERROR(check_positions(positions, rows));
  std::vector<std::int64_t> counted;
  if (has_elements(rows)) ATTN_RETURN_IF_ERROR(count_positions(rows, &positions, &counted));
  RopeTable table;
  ATTN_RETURN_IF_ERROR(rope_table(options, rows.shape[3], positions, &table));
  return rotate_by_table(x, out, table, options.layout, executor);
}

Status rotate_by_table(const TensorView& x, const OutputView& out, const TensorView& cos, const TensorView& sin,
                       std::span<const std::int64_t> positions, RopeLayout layout, Executor* executor) {
  const DefaultFloatEnvironment environment;
  View4 rows, cosines, sines;
  ATTN_RETURN_IF_ERROR(check_x(x, &rows));
  ATTN_RETURN_IF_ERROR(check_angles("cos", cos, rows, &cosines));
  ATTN_RETURN_IF_ERROR(check_angles("sin", sin, rows, &sines));
  if (cosines.shape != sines.shape || cos.rank != sin.rank) {
    return error("sin: shape ", list_of(shape_of(sin)), ", but cos has ", list_of(shape_of(cos)),
                 "; both must be equal");
  }
  RopeTable table;
  if (cos.rank == 3 && !positions.empty()) {
    return error("positions: given with angles [batch, N, R/2], which are one row a query already; leave them out");
  }
  if (!has_elements(rows)) return rotate_by_table(x, out, table, layout, executor);
  std::vector<std::int64_t> counted;
  if (cos.rank == 2) {
    ATTN_RETURN_IF_ERROR(check_rows(positions, cosines.shape[2], rows));
    ATTN_RETURN_IF_ERROR(count_positions(rows, &positions, &counted));
  }
  ATTN_RETURN_IF_ERROR(gather(cosines, sines, positions, &table));
  return rotate_by_table(x, out, table, layout, executor);
}

}  // namespace attn

// The weights of chosen rows and heads: scores by the tile kernels, then each row's own maximum and sum.
#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>
#include <vector>

#include "attn/attention.h"
#include "src/arithmetic/float_environment.h"
#include "src/arithmetic/integers.h"
#include "src/check.h"
#include "src/check_outputs.h"
#include "src/elements.h"
#include "src/run/tile_runner.h"
#include "src/sentence.h"
#include "src/specification/specification.h"
#include "src/state.h"

namespace attn {
namespace {

Status check_indices(std::string_view name, std::span<const std::int64_t> indices, std::int64_t count) {
  for (const std::int64_t index : indices) {
    if (index < 0 || index >= count) return error(name, ": ", index, "; indices are between 0 and ", count - 1);
  }
  return {};
}

std::vector<std::int64_t> chosen(std::span<const std::int64_t> indices, std::int64_t count) {
  std::vector<std::int64_t> all(indices.begin(), indices.end());
  if (all.empty()) {
    all.resize(count);
    std::iota(all.begin(), all.end(), 0);
  }
  return all;
}

// Scores become weights in place; `padded` is the row's length rounded up to whole units, −∞ behind its end.
template <class T>
void normalise(const Problem& p, const KernelSet<T>* kernels, std::int64_t head, std::int64_t padded, T* scores) {
  T max = kMinusInfinity<T>;
  for (std::int64_t j = 0; j < padded; ++j) max = std::max(max, scores[j]);
  T sink = kMinusInfinity<T>;
  if (p.sinks.present())
    sink = static_cast<T>(load_element<double>(p.sinks.at(0, head, 0), p.sinks.dtype) * kLog2E);
  max = std::max(max, sink);
  T sum = 0;
  if (kernels) {
    sum = kernels->weigh(scores, padded, max);
  } else {
    T lanes[kSumLanes] = {};
    for (std::int64_t j = 0; j < padded; ++j) {
      scores[j] = exp2_nonpositive(scores[j] - subtrahend(max));
      lanes[j % kSumLanes] += scores[j];
    }
    sum = fold_lanes(lanes);
  }
  if (p.sinks.present()) sum += exp2_nonpositive(sink - subtrahend(max));
  for (std::int64_t j = 0; j < padded; ++j) scores[j] = scores[j] == 0 ? T(0) : scores[j] / sum;
}

// One row: its scores gathered block by block.
template <class T>
struct GatheredRow {
  std::int64_t key_offset;
  T* scores;
};

template <class T>
void gather_block(void* context, std::int64_t block, const RowColumns* columns, const T* scores) {
  const auto& row = *static_cast<GatheredRow<T>*>(context);
  const std::int32_t first = columns[0].lowest();
  std::copy_n(scores + first, columns[0].highest() - first, row.scores + (block + first - row.key_offset));
}

template <class T>
bool score_by_specification(const Problem& problem, const Sequence& sequence, std::int64_t head, std::int64_t query,
                            T* row) {
  try {
    specification::score_row(problem, sequence, head, query, row);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// What the tasks of one call share. A task is one row of one head of one sequence; neighbours share packed keys.
template <class T>
struct WeightsRun {
  const Problem& problem;
  const KernelSet<T>* kernels;  // nullptr: the specification
  const std::vector<std::int64_t>& rows;
  const std::vector<std::int64_t>& heads;
  const OutputView4& weights;
  int workers;
  std::atomic<bool> out_of_memory{false};
  std::optional<PackedBlocks<T>> blocks{};
  T* scores = nullptr;  // [workers][padded_keys()]
  TileRunner<T>* runners = nullptr;

  std::int64_t tasks() const {
    return problem.batch * static_cast<std::int64_t>(heads.size()) * static_cast<std::int64_t>(rows.size());
  }
  std::int64_t padded_keys() const { return round_up(problem.longest_keys, kUnitKeys); }

  void carve(Carver* carver) {
    scores = carver->take<T>(padded_keys(), workers);
    if (!kernels) return;
    const TilePlan rows_as_tiles{.tile_rows = 1, .tiles_per_head = tasks(), .tasks = tasks()};
    blocks.emplace(problem, *kernels, rows_as_tiles, workers);
    blocks->carve(carver);
    runners = carve_runners(workers, problem, /*most_rows=*/1, *kernels, &*blocks, carver);
  }

  // False where memory runs out.
  bool score_row(const Sequence& sequence, std::int64_t head, std::int64_t query, int worker, T* row) {
    if (!kernels) return score_by_specification(problem, sequence, head, query, row);
    GatheredRow<T> gathered{problem.key_offset, row};
    const std::int64_t tile_row = query * problem.group + head % problem.group;
    runners[worker].visit_scores({sequence.index, head / problem.group, tile_row, 1}, gather_block<T>, &gathered);
    return true;
  }
};

template <class T>
void weigh_row(void* context, std::int64_t index, int worker) {
  auto& run = *static_cast<WeightsRun<T>*>(context);
  const DefaultFloatEnvironment environment;
  const auto row_count = static_cast<std::int64_t>(run.rows.size()),
             head_count = static_cast<std::int64_t>(run.heads.size());
  const std::int64_t row_index = index % row_count, head_index = index / row_count % head_count;
  const Sequence sequence = run.problem.sequence(index / row_count / head_count);
  const std::int64_t head = run.heads[head_index], query = run.rows[row_index];
  T* row = run.scores + worker * run.padded_keys();
  std::fill_n(row, run.padded_keys(), kMinusInfinity<T>);
  if (query < sequence.queries && !run.score_row(sequence, head, query, worker, row)) run.out_of_memory = true;
  normalise(run.problem, run.kernels, head, run.padded_keys(), row);

  const OutputView4& to = run.weights;
  std::byte* element = to.at(sequence.index, head_index, row_index);
  const std::int64_t step = to.strides[3] * static_cast<std::int64_t>(size_of(to.dtype));
  for (std::int64_t j = 0; j < to.shape[3]; ++j) store_element(element + j * step, to.dtype, row[j]);
}

template <class T>
Status run_weights(const Problem& problem, const std::vector<std::int64_t>& rows,
                   const std::vector<std::int64_t>& heads, const OutputView4& weights) {
  Executor& executor = *problem.executor;
  const Kernels* kernels = kernels_for(current_isa());
  WeightsRun<T> run{problem, kernels ? &kernels->of<T>() : nullptr, rows, heads, weights, executor.threads()};
  if (run.tasks() == 0) return {};
  Carver measure;
  run.carve(&measure);
  const Scratch scratch(measure.used());
  if (!scratch.data())
    return error("scratch memory: ", measure.used(), " bytes could not be had; fewer threads need less");
  Carver carver(scratch.data());
  run.carve(&carver);
  executor.run(run.tasks(), weigh_row<T>, &run);
  if (run.out_of_memory) return error("memory: a row of ", problem.key_dim, " numbers could not be had");
  return {};
}

}  // namespace

Status weights(const TensorView& q, const TensorView& k, const OutputView& weights, const AttentionOptions& options,
               std::span<const std::int64_t> rows, std::span<const std::int64_t> heads) {
  const DefaultFloatEnvironment environment;
  Problem problem;
  ATTN_RETURN_IF_ERROR(check_problem({q, &k, nullptr}, options, &problem));
  ATTN_RETURN_IF_ERROR(check_indices("rows", rows, problem.longest_queries));
  ATTN_RETURN_IF_ERROR(check_indices("heads", heads, problem.query_heads));
  const auto count = [](std::span<const std::int64_t> indices, std::int64_t all) {
    return indices.empty() ? all : static_cast<std::int64_t>(indices.size());
  };
  OutputView4 to;
  const OutputShape shape{problem.batch, count(heads, problem.query_heads), count(rows, problem.longest_queries),
                          problem.longest_keys};
  ATTN_RETURN_IF_ERROR(check_output("weights", weights, shape, problem.compute, &to));
  ATTN_RETURN_IF_ERROR(check_memory_of("weights", to, problem));
  const auto all_rows = chosen(rows, problem.longest_queries), all_heads = chosen(heads, problem.query_heads);
  return problem.compute == DType::f64 ? run_weights<double>(problem, all_rows, all_heads, to)
                                       : run_weights<float>(problem, all_rows, all_heads, to);
}

}  // namespace attn

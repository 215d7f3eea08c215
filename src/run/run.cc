#include "src/run/run.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>

#include "src/arithmetic/float_environment.h"
#include "src/arithmetic/integers.h"
#include "src/plan/tile_plan.h"
#include "src/run/segment_states.h"
#include "src/run/task_ranges.h"
#include "src/run/tile_runner.h"
#include "src/sentence.h"
#include "src/specification/specification.h"

namespace attn {
namespace {

RowPlace place_of(const Sequence& sequence, std::int64_t head, std::int64_t query) {
  return {sequence.tensor_batch, head, sequence.query_row + query};
}

// Everything that the tasks of one call share.
template <class T>
struct TiledRun {
  const Problem& problem;
  const Destination& destination;
  const KernelSet<T>& kernels;
  TilePlan tiles;
  int threads;  // worker numbers are below this
  int workers;  // runners: no more than tasks
  PackedBlocks<T> blocks;
  SegmentStates<T> segments{};
  TaskRanges ranges;
  TileRunner<T>* runners = nullptr;

  TiledRun(const Problem& p, const Destination& to, const KernelSet<T>& kernels, int threads)
      : problem(p),
        destination(to),
        kernels(kernels),
        tiles(plan_tiles(p)),
        threads(threads),
        workers(static_cast<int>(std::clamp<std::int64_t>(tiles.tasks, 1, threads))),
        blocks(p, kernels, tiles, workers) {}

  // Segments of keys follow each other in memory, so a worker takes them in a row (read in turn by two workers, memory
  // gave 8 % less). Tiles are taken by all workers in one order: neighbours share packed keys.
  bool takes_ranges() const { return tiles.segments > 1 && tiles.tasks <= TaskRanges::kMostTasks; }

  void carve(Carver* carver) {
    blocks.carve(carver);
    segments.carve(tiles, round_up(problem.value_dim, kUnitKeys), carver);
    if (takes_ranges()) ranges.carve(tiles.tasks, workers, carver);
    runners = carve_runners(workers, problem, tiles.tile_rows, kernels, &blocks, carver);
  }
};

template <class T>
void store_tile(const TiledRun<T>& run, const TileTask& task, const TileState<T>& state) {
  const Problem& problem = run.problem;
  const Sequence sequence = problem.sequence(task.sequence);
  const std::int64_t columns = round_up(problem.value_dim, kUnitKeys);
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const std::int64_t head = task.kv_head * problem.group + (task.first_row + r) % problem.group;
    const RowPlace place = place_of(sequence, head, (task.first_row + r) / problem.group);
    store_row(problem.sinks, run.destination, place, state.max[r], state.sum[r], state.out + r * columns,
              run.kernels.divide_row);
  }
}

template <class T>
void run_task(TiledRun<T>& run, std::int64_t index, TileRunner<T>& runner) {
  const std::int64_t tile = index / run.tiles.segments, segment = index % run.tiles.segments;
  const TileTask task = tile_at(run.problem, run.tiles, tile);
  if (task.rows == 0) return;
  if (run.tiles.segments == 1) return store_tile(run, task, runner.attend(task));
  const std::int64_t first_key = run.tiles.first_segment + segment * kSegmentKeys;
  const bool seen = runner.attend_segment(task, first_key, run.segments.at(tile, segment));
  if (run.segments.finish(tile, segment, seen))
    store_tile(run, task, run.segments.merge(run.kernels, tile, task.rows));
}

template <class T>
void run_one(void* context, std::int64_t index, int worker) {
  auto& run = *static_cast<TiledRun<T>*>(context);
  const DefaultFloatEnvironment environment;
  // With fewer runners than threads there are no more tasks than runners: each has its own.
  run_task(run, index, run.runners[run.workers < run.threads ? index : worker]);
}

template <class T>
void run_range(void* context, std::int64_t index, int /*worker*/) {
  auto& run = *static_cast<TiledRun<T>*>(context);
  const DefaultFloatEnvironment environment;
  const int own = static_cast<int>(index);
  for (std::int64_t task = run.ranges.take(own); task >= 0; task = run.ranges.take(own))
    run_task(run, task, run.runners[own]);
}

// In multiply-adds, at which a core does about 50 a nanosecond; a number of k or v to read counts as 8.
double work_of(const Problem& p) {
  const double dims = static_cast<double>(p.key_dim + p.value_dim);
  const double numbers = static_cast<double>(p.batch * p.kv_heads) * static_cast<double>(p.longest_keys) * dims;
  return numbers * (static_cast<double>(p.group * p.longest_queries) + 8);
}

template <class T>
Status run_tiles(const Problem& problem, const Destination& destination, const KernelSet<T>& kernels) {
  Executor& executor = *problem.executor;
  TiledRun<T> run(problem, destination, kernels, executor.threads());
  if (run.tiles.tasks == 0) return {};
  Carver measure;
  run.carve(&measure);
  const Scratch scratch(measure.used());
  if (!scratch.data()) {
    return error("scratch memory: ", measure.used(),
                 " bytes could not be had; smaller head dims or fewer threads need less");
  }
  Carver carver(scratch.data());
  run.carve(&carver);
  if (run.workers == 1 || work_of(problem) < executor.least_work()) {
    for (std::int64_t t = 0; t < run.tiles.tasks; ++t) run_one<T>(&run, t, 0);
  } else if (run.takes_ranges()) {
    executor.run(run.workers, run_range<T>, &run);
  } else {
    executor.run(run.tiles.tasks, run_one<T>, &run);
  }
  return {};
}

// Machines without a SIMD target, and the oracle of tests: the specification, a row a task.
struct SpecificationRun {
  const Problem& problem;
  const Destination& destination;
  std::atomic<bool> out_of_memory{false};
};

template <class T>
void run_specification_row(void* context, std::int64_t index, int /*worker*/) {
  auto& run = *static_cast<SpecificationRun*>(context);
  const Problem& problem = run.problem;
  const std::int64_t query = index % problem.longest_queries;
  const std::int64_t head = index / problem.longest_queries % problem.query_heads;
  const Sequence sequence = problem.sequence(index / problem.longest_queries / problem.query_heads);
  if (query >= sequence.queries) return;
  const DefaultFloatEnvironment environment;
  try {
    auto state = specification::attend_row<T>(problem, sequence, head, query);
    store_row(problem.sinks, run.destination, place_of(sequence, head, query), state.max, state.sum,
              state.out.data());
  } catch (const std::exception&) {
    run.out_of_memory = true;
  }
}

template <class T>
Status run_specification(const Problem& problem, const Destination& destination) {
  SpecificationRun run{problem, destination};
  const std::int64_t rows = problem.batch * problem.query_heads * problem.longest_queries;
  if (rows > 0) problem.executor->run(rows, run_specification_row<T>, &run);
  if (run.out_of_memory)
    return error("memory: rows of ", problem.key_dim, " and ", problem.value_dim, " numbers could not be had");
  return {};
}

// Rows that are no query of any sequence: behind a query length, or behind the last packed sequence.
template <class T>
void store_padding(const Problem& problem, const Destination& destination) {
  for (std::int64_t b = 0; b < problem.q.shape[0]; ++b) {
    std::int64_t first = problem.q.shape[2];
    if (problem.packed()) first = problem.query_starts.back();
    if (!problem.query_lengths.empty()) first = problem.query_lengths[b];
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t i = first; i < problem.q.shape[2]; ++i) store_padding_row<T>(destination, {b, h, i});
    }
  }
}

template <class T>
const KernelSet<T>& kernels_of(const Kernels& kernels, const Problem& problem) {
  if constexpr (sizeof(T) == sizeof(float)) {
    if (problem.bf16_products) return kernels.bf16;
  }
  return kernels.of<T>();
}

template <class T>
Status run_in(const Problem& problem, const Destination& destination) {
  const Kernels* kernels = kernels_for(current_isa());
  ATTN_RETURN_IF_ERROR(kernels ? run_tiles<T>(problem, destination, kernels_of<T>(*kernels, problem))
                               : run_specification<T>(problem, destination));
  store_padding<T>(problem, destination);
  return {};
}

template <class T>
std::int64_t tiled_scratch_bytes(const Problem& problem, const KernelSet<T>& kernels) {
  const Destination nowhere;
  TiledRun<T> run(problem, nowhere, kernels, problem.executor->threads());
  Carver measure;
  if (run.tiles.tasks > 0) run.carve(&measure);
  return measure.used();
}

}  // namespace

Status run(const Problem& problem, const Destination& destination) {
  return problem.compute == DType::f64 ? run_in<double>(problem, destination) : run_in<float>(problem, destination);
}

std::int64_t scratch_bytes_of(const Problem& problem) {
  const Kernels* kernels = kernels_for(current_isa());
  if (!kernels) {
    Carver rows;  // query, state, segment's state and block's sum of a row
    rows.take<double>(problem.key_dim, problem.executor->threads());
    rows.take<double>(problem.value_dim, 3, problem.executor->threads());
    return rows.used();
  }
  return problem.compute == DType::f64 ? tiled_scratch_bytes(problem, kernels->f64)
                                       : tiled_scratch_bytes(problem, kernels_of<float>(*kernels, problem));
}

}  // namespace attn

#include "src/plan/tile_plan.h"

#include <algorithm>

#include "attn/numerics.h"
#include "src/kernels/kernels.h"

namespace attn {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// 96 rows keep the tile's scores (96 KiB) in L2 beside a key block while each key panel in L1 serves 16 row groups.
// Wide heads get fewer rows, so that queries and results stay there, too.
std::int64_t most_tile_rows(const Problem& p) {
  constexpr std::int64_t kRows = 96, kElements = 96 * 512;
  const std::int64_t fit = kElements / std::max<std::int64_t>(1, p.key_dim + p.value_dim) / kRowGroup * kRowGroup;
  return std::clamp<std::int64_t>(fit, kRowGroup, kRows);
}

}  // namespace

TilePlan plan_tiles(const Problem& p) {
  TilePlan plan;
  const std::int64_t rows = p.group * p.longest_queries;
  if (rows == 0 || p.kv_heads == 0 || p.batch == 0) return plan;
  // Tiles of nearly equal height: 128 rows are 66 + 62, not 96 + 32.
  plan.tiles_per_head = divide_up(rows, most_tile_rows(p));
  plan.tile_rows = std::min(rows, divide_up(divide_up(rows, plan.tiles_per_head), kRowGroup) * kRowGroup);
  plan.tiles_per_head = divide_up(rows, plan.tile_rows);
  plan.tasks = p.batch * p.kv_heads * plan.tiles_per_head;
  return plan;
}

TileTask task_at(const Problem& p, const TilePlan& plan, std::int64_t index) {
  TileTask task;
  const std::int64_t head = index / plan.tiles_per_head;
  const std::int64_t tile = plan.tiles_per_head - 1 - index % plan.tiles_per_head;
  task.sequence = head / p.kv_heads;
  task.kv_head = head % p.kv_heads;
  task.first_row = tile * plan.tile_rows;
  task.rows =
      std::clamp<std::int64_t>(p.group * p.sequence(task.sequence).queries - task.first_row, 0, plan.tile_rows);
  return task;
}

bool TileKeys::sees_any(std::int64_t from, std::int64_t to) const {
  return (from < sink_end_any && to > first) || (from < end_any && to > begin_any);
}

bool TileKeys::sees_all(std::int64_t from, std::int64_t to) const {
  return (from >= first && to <= sink_end_all) || (from >= begin_all && to <= end_all);
}

std::int64_t TileKeys::lowest() const { return first < sink_end_any ? first : begin_any; }
std::int64_t TileKeys::highest() const { return std::max(sink_end_any, end_any); }

TileKeys tile_keys(const Problem& p, const Sequence& sequence, std::int64_t first_position,
                   std::int64_t last_position) {
  TileKeys tile;
  constexpr std::int64_t kFar = Problem::kUnbounded;
  tile.first = p.key_offset;
  tile.sink_end_any = tile.end_any = p.key_offset;
  tile.sink_end_all = tile.begin_any = tile.end_all = kFar;
  tile.begin_all = p.key_offset;
  for (std::int64_t position = first_position; position <= last_position; ++position) {
    const RowKeys keys = row_keys(p, sequence, position);
    tile.sink_end_any = std::max(tile.sink_end_any, keys.sink_end);
    tile.sink_end_all = std::min(tile.sink_end_all, keys.sink_end);
    tile.begin_all = std::max(tile.begin_all, keys.begin);
    tile.end_all = std::min(tile.end_all, keys.end);
    if (keys.begin >= keys.end) continue;
    tile.begin_any = std::min(tile.begin_any, keys.begin);
    tile.end_any = std::max(tile.end_any, keys.end);
  }
  tile.begin_any = std::min(tile.begin_any, tile.end_any);
  return tile;
}

namespace {

void count_tile(const Problem& p, const Sequence& sequence, const TileTask& task, Plan* plan) {
  const std::int64_t first = task.first_row / p.group, last = (task.first_row + task.rows - 1) / p.group;
  const TileKeys keys = tile_keys(p, sequence, first, last);
  const std::int64_t end = p.key_offset + sequence.keys;
  for (std::int64_t block = p.key_offset / kBlockKeys * kBlockKeys; block < end; block += kBlockKeys) {
    const std::int64_t from = std::max(block, p.key_offset), to = std::min(block + kBlockKeys, end);
    if (!keys.sees_any(from, to)) {
      ++plan->tiles_skipped;
    } else if (!p.dense_mask() && keys.sees_all(from, to)) {
      ++plan->tiles_full;
    } else {
      ++plan->tiles_partial;
    }
  }
}

double pairs_seen(const Problem& p, const Sequence& sequence) {
  double pairs = 0;
  for (std::int64_t i = 0; i < sequence.queries; ++i) {
    const RowKeys keys = row_keys(p, sequence, i);
    pairs += static_cast<double>(keys.sink_end - keys.first) + static_cast<double>(keys.end - keys.begin);
  }
  return pairs;
}

double bytes_of(const View4& view) {
  double bytes = view.present() ? static_cast<double>(size_of(view.dtype)) : 0;
  for (int d = 0; d < 4; ++d) bytes *= view.strides[d] == 0 ? 1 : static_cast<double>(view.shape[d]);
  return bytes;
}

}  // namespace

void count_work(const Problem& p, const TilePlan& tiles, Plan* plan) {
  const double heads = static_cast<double>(p.query_heads);
  for (std::int64_t s = 0; s < p.batch && tiles.tasks > 0; ++s) {
    const Sequence sequence = p.sequence(s);
    Plan head;
    for (std::int64_t t = 0; t < tiles.tiles_per_head; ++t) {
      const TileTask task = task_at(p, tiles, (s * p.kv_heads) * tiles.tiles_per_head + t);
      if (task.rows > 0) count_tile(p, sequence, task, &head);
    }
    plan->tiles_full += head.tiles_full * p.kv_heads;
    plan->tiles_partial += head.tiles_partial * p.kv_heads;
    plan->tiles_skipped += head.tiles_skipped * p.kv_heads;
    plan->flops += 2.0 * static_cast<double>(p.key_dim + p.value_dim) * heads * pairs_seen(p, sequence);
    plan->table_bytes += heads * static_cast<double>(sequence.queries) * static_cast<double>(sequence.keys) *
                         static_cast<double>(size_of(p.compute));
  }
  const double rows = static_cast<double>(p.q.shape[0]) * heads * static_cast<double>(p.q.shape[2]);
  const double out = rows * static_cast<double>(p.value_dim) * static_cast<double>(size_of(p.q.dtype));
  plan->bytes = bytes_of(p.q) + bytes_of(p.k) + bytes_of(p.v) + bytes_of(p.mask) + bytes_of(p.bias) + out;
}

}  // namespace attn

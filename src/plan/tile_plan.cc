#include "src/plan/tile_plan.h"

#include <algorithm>

#include "attn/numerics.h"
#include "src/arithmetic/integers.h"
#include "src/kernels/kernels.h"

namespace attn {
namespace {

// A tile's height is a trade: every tile reads all keys and values once, so tall ones read less, but its queries and
// results must stay in L2 beside a key block. Long prompts and large batches have tiles to spare.
std::int64_t most_tile_rows(const Problem& p) {
  constexpr std::int64_t kMost = 192, kManyRows = 2048, kManyHeads = 64;
  const bool tiles_to_spare = p.group * p.longest_queries >= kManyRows || p.batch * p.kv_heads >= kManyHeads;
  const std::int64_t most = tiles_to_spare ? kMost : kMost / 2;
  const std::int64_t elements = most * 512;
  const std::int64_t fit = elements / std::max<std::int64_t>(1, p.key_dim + p.value_dim) / kRowGroup * kRowGroup;
  return std::clamp<std::int64_t>(fit, kRowGroup, most);
}

// Only heads of one tile: a state a segment then takes less memory than the segment's keys and values.
void split_keys(const Problem& p, std::int64_t tiles, TilePlan* plan) {
  constexpr std::int64_t kFewTiles = 64;
  if (plan->tiles_per_head > 1 || tiles >= kFewTiles || p.longest_keys == 0) return;
  const std::int64_t first = p.key_offset / kSegmentKeys;
  plan->first_segment = first * kSegmentKeys;
  plan->segments = divide_up(p.key_offset + p.longest_keys, kSegmentKeys) - first;
}

}  // namespace

TilePlan plan_tiles(const Problem& p) {
  TilePlan plan;
  const std::int64_t rows = p.group * p.longest_queries;
  if (rows == 0 || p.kv_heads == 0 || p.batch == 0) return plan;
  // Tiles of nearly equal height: 128 rows are 66 + 62, not 96 + 32.
  plan.tiles_per_head = divide_up(rows, most_tile_rows(p));
  plan.tile_rows = std::min(rows, round_up(divide_up(rows, plan.tiles_per_head), kRowGroup));
  plan.tiles_per_head = divide_up(rows, plan.tile_rows);
  const std::int64_t tiles = p.batch * p.kv_heads * plan.tiles_per_head;
  split_keys(p, tiles, &plan);
  plan.tasks = tiles * plan.segments;
  return plan;
}

TileTask tile_at(const Problem& p, const TilePlan& plan, std::int64_t index) {
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
  const std::int64_t last = p.same_keys_for_all_rows() ? first_position : last_position;
  for (std::int64_t position = first_position; position <= last; ++position) {
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

// Key blocks, by their numbers: [first, end).
struct Blocks {
  std::int64_t first = 0, end = 0;

  std::int64_t count() const { return std::max<std::int64_t>(0, end - first); }
};

std::int64_t count_of_either(const Blocks& a, const Blocks& b) {
  const Blocks both{std::max(a.first, b.first), std::min(a.end, b.end)};
  return a.count() + b.count() - (a.count() > 0 && b.count() > 0 ? both.count() : 0);
}

// Blocks that hold a key of [from, to).
Blocks touched(std::int64_t from, std::int64_t to) {
  return from < to ? Blocks{from / kBlockKeys, divide_up(to, kBlockKeys)} : Blocks{};
}

// Blocks all of whose keys, as far as there are any, lie in [from, to).
Blocks covered(std::int64_t from, std::int64_t to, std::int64_t first_key, std::int64_t end_key) {
  if (from >= to) return {};
  const std::int64_t first = from <= first_key ? first_key / kBlockKeys : divide_up(from, kBlockKeys);
  return {first, to >= end_key ? divide_up(end_key, kBlockKeys) : to / kBlockKeys};
}

// Adds one tile, which stands for `weight` tiles.
void count_tile(const Problem& p, const Sequence& sequence, const TileTask& task, std::int64_t weight, Plan* plan) {
  const TileKeys keys =
      tile_keys(p, sequence, task.first_row / p.group, (task.first_row + task.rows - 1) / p.group);
  const std::int64_t first_key = p.key_offset, end_key = p.key_offset + sequence.keys;
  const std::int64_t all = touched(first_key, end_key).count();
  const std::int64_t seen =
      count_of_either(touched(first_key, keys.sink_end_any), touched(keys.begin_any, keys.end_any));
  const std::int64_t full = p.dense_mask()
                                ? 0
                                : count_of_either(covered(first_key, keys.sink_end_all, first_key, end_key),
                                                  covered(keys.begin_all, keys.end_all, first_key, end_key));
  plan->tiles_full += weight * full;
  plan->tiles_partial += weight * (seen - full);
  plan->tiles_skipped += weight * (all - seen);
}

// So many tiles or rows are looked at one by one; of more, every second, third, … stands for its neighbours, so that a
// plan comes at once whatever the sizes.
constexpr std::int64_t kCountedTiles = 1 << 16, kCountedRows = 1 << 22;

void count_tiles(const Problem& p, const TilePlan& tiles, const Sequence& sequence, Plan* plan) {
  const std::int64_t rows = p.group * sequence.queries;
  const std::int64_t count = divide_up(rows, tiles.tile_rows);
  const std::int64_t step = count / kCountedTiles + 1;
  for (std::int64_t t = 0; t < count; t += step) {
    const std::int64_t first = t * tiles.tile_rows;
    const TileTask task{sequence.index, 0, first, std::min(tiles.tile_rows, rows - first)};
    count_tile(p, sequence, task, std::min(step, count - t) * p.kv_heads, plan);
  }
}

double pairs_seen(const Problem& p, const Sequence& sequence) {
  double pairs = 0;
  const std::int64_t step = sequence.queries / kCountedRows + 1;
  for (std::int64_t i = 0; i < sequence.queries; i += step) {
    const RowKeys keys = row_keys(p, sequence, i);
    const double weight = static_cast<double>(std::min(step, sequence.queries - i));
    pairs +=
        weight * (static_cast<double>(keys.sink_end - keys.first) + static_cast<double>(keys.end - keys.begin));
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
  // Without lengths of their own all sequences are like the first.
  const std::int64_t alike = p.ragged() ? 1 : p.batch;
  for (std::int64_t s = 0; s < p.batch && tiles.tasks > 0; s += alike) {
    const Sequence sequence = p.sequence(s);
    Plan one;
    count_tiles(p, tiles, sequence, &one);
    plan->tiles_full += alike * one.tiles_full;
    plan->tiles_partial += alike * one.tiles_partial;
    plan->tiles_skipped += alike * one.tiles_skipped;
    const double pairs = static_cast<double>(alike) * heads * pairs_seen(p, sequence);
    plan->flops += 2.0 * (static_cast<double>(p.key_dim) + static_cast<double>(p.value_dim)) * pairs;
    plan->table_bytes += static_cast<double>(alike) * heads * static_cast<double>(sequence.queries) *
                         static_cast<double>(sequence.keys) * static_cast<double>(size_of(p.compute));
  }
  const double rows = static_cast<double>(p.q.shape[0]) * heads * static_cast<double>(p.q.shape[2]);
  const double out = rows * static_cast<double>(p.value_dim) * static_cast<double>(size_of(p.q.dtype));
  plan->bytes = bytes_of(p.q) + bytes_of(p.k) + bytes_of(p.v) + bytes_of(p.mask) + bytes_of(p.bias) + out;
}

}  // namespace attn

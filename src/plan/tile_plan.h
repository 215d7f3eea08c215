// How a problem is cut: query tiles, tasks, and which key blocks a tile visits.
#pragma once

#include <cstdint>

#include "attn/attention.h"
#include "src/problem.h"

namespace attn {

/// Tasks are (sequence, key/value head, query tile), in that order: neighbours share packed keys. A tile's rows are the
/// query heads of a group folded into positions: row r is position r / group of head r % group, so that a key is read
/// once for all heads that share it. The height comes from the shape alone, never from the number of threads.
struct TilePlan {
  std::int64_t tile_rows = 0;       // a multiple of kRowGroup, unless there are fewer rows
  std::int64_t tiles_per_head = 0;  // of the longest sequence; shorter ones leave tasks empty
  /// Where there are few tiles, each segment of its keys is a task of its own, neighbours in memory for neighbours in
  /// number; their states merge when the tile's last one is done.
  std::int64_t segments = 1;
  std::int64_t first_segment = 0;  // position
  std::int64_t tasks = 0;

  std::int64_t tiles() const { return tasks / segments; }
};

TilePlan plan_tiles(const Problem& problem);

/// One tile. Tiles of a head come last first: with causal masks the longest ones start first.
struct TileTask {
  std::int64_t sequence = 0, kv_head = 0;
  std::int64_t first_row = 0, rows = 0;  // rows 0: nothing to do
};

TileTask tile_at(const Problem& problem, const TilePlan& plan, std::int64_t tile);

/// The keys of all rows of a tile at once: what any of them sees, and what all of them see.
struct TileKeys {
  std::int64_t first = 0;
  std::int64_t sink_end_all = 0, sink_end_any = 0;
  std::int64_t begin_any = 0, begin_all = 0, end_all = 0, end_any = 0;

  bool sees_any(std::int64_t from, std::int64_t to) const;
  bool sees_all(std::int64_t from, std::int64_t to) const;
  std::int64_t lowest() const;
  std::int64_t highest() const;
};

TileKeys tile_keys(const Problem& problem, const Sequence& sequence, std::int64_t first_position,
                   std::int64_t last_position);

/// Counts tiles, operations and bytes for attn::plan().
void count_work(const Problem& problem, const TilePlan& tiles, Plan* plan);

}  // namespace attn

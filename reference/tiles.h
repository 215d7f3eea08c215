// The same softmax, tile by tile: what FlashAttention keeps instead of the table.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/row.h"
#include "reference/trace.h"

namespace attn::reference {

/// One query's way through its keys, `tile` of them at a time, in ascending order. `row` is attend()'s; `values`
/// are the value rows of all keys, [M, Dv]. A sink logit is no tile: it joins when all are done.
std::vector<Tile> work_in_tiles(const Row& row, const Matrix& values, std::int64_t tile);

}  // namespace attn::reference

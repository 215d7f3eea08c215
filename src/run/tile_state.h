// The states of a tile's rows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/arithmetic/integers.h"
#include "src/arithmetic/scalar.h"
#include "src/kernels/kernels.h"
#include "src/run/scratch.h"

namespace attn {

/// max and sum [rows, padded to kStateRows], out [rows][columns].
template <class T>
struct TileState {
  T* max = nullptr;
  T* sum = nullptr;
  T* out = nullptr;

  static TileState carve(Carver* carver, std::int64_t rows, std::int64_t columns) {
    const std::int64_t padded = round_up(rows, kStateRows);
    return {carver->template take<T>(padded), carver->template take<T>(padded),
            carver->template take<T>(columns, rows)};
  }

  /// The empty state.
  void reset(std::int64_t rows, std::int64_t columns) const {
    std::fill_n(max, rows, kMinusInfinity<T>);
    std::fill_n(sum, rows, T(0));
    std::fill_n(out, rows * columns, T(0));
  }
};

}  // namespace attn

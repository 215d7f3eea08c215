// Attention of a query tile over a key block with 16-bit products: q, k, v and the weights rounded to bf16, products
// summed in f32 by the processor's own instructions (bf16_products-inl.h). Softmax is the f32 kernels'.
//
// Those instructions sum pairs of products: so dims (of q·k) and keys (of weights·v) lie in pairs, padded with zeros
// to 32.

#if defined(ATTN_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_BF16_INL_H_
#undef ATTN_KERNELS_BF16_INL_H_
#else
#define ATTN_KERNELS_BF16_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "src/arithmetic/integers.h"
#include "src/kernels/bf16_products-inl.h"
#include "src/kernels/block-inl.h"
#include "src/kernels/pack-inl.h"
#include "src/kernels/softmax-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16,amx-tile,amx-bf16")
namespace attn::HWY_NAMESPACE::bf16 {

inline constexpr std::int64_t kMostRow = 256;  // numbers converted at a time

// ---- packing

/// A piece of a row as bf16: numbers [column, column + padded), zeros behind the row's `columns` and where there is no
/// such row among the first `rows`. At most kMostRow.
HWY_INLINE void RoundPiece(const SourceRows& source, std::int64_t row, std::int64_t rows, std::int64_t column,
                           std::int64_t columns, std::int64_t padded, Bits* to) {
  const bool exists = row >= 0 && row < rows;
  const std::int64_t count = exists ? std::clamp<std::int64_t>(columns - column, 0, padded) : 0;
  std::fill(to + count, to + padded, Bits{0});
  if (count == 0) return;
  if (source.dtype == DType::bf16 && source.column_stride == 1) {
    std::memcpy(to, source.data + (row * source.row_stride + column) * 2, count * sizeof(Bits));
    return;
  }
  alignas(64) float wide[kMostRow];
  WidenRow(source, row, column, count, wide);
  std::fill(wide + count, wide + padded, 0.0F);
  for (std::int64_t i = 0; i < padded; i += 16) {
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_load_ps(wide + i));
    std::memcpy(to + i, &rounded, sizeof rounded);
  }
}

/// Units [dims/2][16 keys][2]: pairs of dims, on their side as the f32 units are.
void PackKeys(const SourceRows& keys, std::int64_t count, std::int32_t first_column, std::int64_t key_dim,
              float* units) {
  const std::int64_t dims = round_up(key_dim, kStep), pairs = dims / 2;
  const std::int64_t end = first_column + count;
  for (std::int64_t start = first_column / kStep * kStep; start < round_up(end, kStep); start += kUnitKeys) {
    for (std::int64_t piece = 0; piece < dims; piece += kMostRow) {
      const std::int64_t here = std::min(kMostRow, dims - piece);
      alignas(64) Bits rows[kUnitKeys * kMostRow];
      for (std::int64_t r = 0; r < kUnitKeys; ++r)
        RoundPiece(keys, start + r - first_column, count, piece, key_dim, here, rows + r * here);
      // Pairs are moved as f32 is: only bits move.
      TransposeColumns<kUnitKeys>(reinterpret_cast<const float*>(rows), here / 2, here / 2,
                                  units + start * pairs + piece / 2 * kUnitKeys);
    }
  }
}

/// Units of 16 columns [keys/2][16][2]: pairs of keys.
void PackValues(const SourceRows& values, std::int64_t count, std::int32_t first_column, std::int64_t value_dim,
                std::int64_t unit_stride, float* units) {
  const std::int64_t columns = round_up(value_dim, kUnitKeys), end = first_column + count;
  for (std::int64_t key = first_column / kStep * kStep; key < round_up(end, kStep); key += 2) {
    for (std::int64_t piece = 0; piece < columns; piece += kMostRow) {
      const std::int64_t padded = std::min(kMostRow, columns - piece);
      alignas(64) Bits rows[2][kMostRow];
      for (int r = 0; r < 2; ++r)
        RoundPiece(values, key + r - first_column, count, piece, value_dim, padded, rows[r]);
      for (std::int64_t c = 0; c < padded; c += kUnitKeys) {
        const __m512i even =
            _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(rows[0] + c)));
        const __m512i odd = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(rows[1] + c)));
        const __m512i pairs = _mm512_or_si512(even, _mm512_slli_epi32(odd, 16));
        _mm512_storeu_si512(units + (piece + c) / kUnitKeys * unit_stride + key / 2 * kUnitKeys, pairs);
      }
    }
  }
}

/// A unit of a cache to the units above: of bf16 the pairs lie as they must, others go number by number.
void UnpackKeys(const UnitLayout& layout, const std::byte* unit, std::int64_t tokens, std::int32_t first_column,
                float* units) {
  const std::int64_t dims = round_up(layout.key_dim, kStep);
  auto* to = reinterpret_cast<Bits*>(units + first_column * (dims / 2));
  const bool as_it_lies = layout.type == CacheType::bf16 && tokens == kUnitKeys;
  const std::int64_t copied = as_it_lies ? layout.key_dim / 2 * 2 : 0;
  std::memcpy(to, unit, copied * kUnitKeys * sizeof(Bits));
  for (std::int64_t d = copied; d < dims; ++d) {
    for (std::int64_t token = 0; token < kUnitKeys; ++token) {
      const bool exists = token < tokens && d < layout.key_dim;
      const float number = exists ? load_key(layout, unit, token, d) : 0.0F;
      to[(d / 2 * kUnitKeys + token) * 2 + d % 2] = narrow_bf16(number);
    }
  }
}

void UnpackValues(const UnitLayout& layout, const std::byte* unit, std::int64_t tokens, std::int32_t first_column,
                  std::int64_t unit_stride, float* units) {
  const std::int64_t columns = layout.value_columns();
  const bool as_it_lies = layout.type == CacheType::bf16 && tokens == kUnitKeys;
  for (std::int64_t token = 0; token < kUnitKeys; ++token) {
    const std::int64_t key = first_column + token;
    for (std::int64_t c = 0; c < columns; c += kUnitKeys) {
      float* pair = units + c / kUnitKeys * unit_stride + key / 2 * kUnitKeys;
      if (as_it_lies) {
        if (token % 2 == 0) std::memcpy(pair, unit + (token / 2 * columns + c) * 4, kUnitKeys * 4);
        continue;
      }
      for (std::int64_t i = 0; i < kUnitKeys; ++i) {
        const float number = token < tokens ? load_value(layout, unit, token, c + i) : 0.0F;
        reinterpret_cast<Bits*>(pair)[i * 2 + key % 2] = narrow_bf16(number);
      }
    }
  }
}

/// Rows of dims numbers, a row where f32 has as many: half of the memory stays unused. The scale comes after q·k.
void PackQueries(const SourceRows* rows, int count, std::int64_t key_dim, double /*factor*/, float* group) {
  const std::int64_t dims = round_up(key_dim, kStep);
  for (int r = 0; r < count; ++r) {
    for (std::int64_t piece = 0; piece < dims; piece += kMostRow) {
      RoundPiece(rows[r], 0, 1, piece, key_dim, std::min(kMostRow, dims - piece),
                 reinterpret_cast<Bits*>(group + r * dims) + piece);
    }
  }
}

// ---- weighted values

/// out ← out·rescale + sums, of rows [first, end) and the columns [column, column + 32) that there are.
HWY_INLINE void AddSums(const BlockTask<float>& strip, const ValueSums& sums, int first, int end,
                        std::int64_t column, const float* rescale) {
  const hn::ScalableTag<float> d;
  const std::int64_t columns = std::min<std::int64_t>(2 * kTile, strip.value_dim - column);
  for (int row = first; row < end; ++row) {
    if (strip.columns[row].empty()) continue;
    const auto factor = hn::Set(d, rescale[row]);
    float* out = strip.out + row * strip.value_dim + column;
    for (std::int64_t c = 0; c < columns; c += kTile)
      hn::StoreU(hn::MulAdd(hn::LoadU(d, out + c), factor, hn::LoadU(d, sums.of[row] + c)), d, out + c);
  }
}

/// Values of one unit of columns; a last single one goes with itself, and what it yields is not used.
HWY_INLINE const float* ValueUnit(const BlockTask<float>& strip, std::int64_t column) {
  const std::int64_t unit = std::min(column, strip.value_dim - kTile) / kUnitKeys;
  return static_cast<const float*>(strip.block->values[0]) + unit * strip.block->value_unit;
}

template <class Products>
HWY_INLINE void AddValues(const BlockTask<float>& strip, const Bits* weights, StepRange range,
                          const float* rescale) {
  for (std::int64_t column = 0; column < strip.value_dim; column += 2 * kTile) {
    const TwoUnits units{ValueUnit(strip, column), ValueUnit(strip, column + kTile)};
    ValueSums sums;
    Products::Multiply(strip.rows, ValueProduct(weights, units, range, &sums));
    AddSums(strip, sums, 0, strip.rows, column, rescale);
  }
}

/// The values of one unit of columns as the row sees them: 0 where a key is hidden.
HWY_INLINE void KeepSeenValues(const BlockTask<float>& strip, int row, StepRange range, const float* unit,
                               Bits* kept) {
  std::memcpy(kept, unit, range.end * kUnitKeys * sizeof(Bits));
  for (std::int32_t key = range.begin; key < range.end; ++key) {
    if (!IsHidden(strip, row, key)) continue;
    for (std::int64_t c = 0; c < kUnitKeys; ++c) kept[key / 2 * 2 * kUnitKeys + 2 * c + key % 2] = 0;
  }
}

/// The same sums with the values of hidden keys left out, row by row: only where they hold NaN or Inf.
template <class Products>
HWY_NOINLINE void AddSeenValues(const BlockTask<float>& strip, const Bits* weights, StepRange range,
                                const float* rescale) {
  alignas(64) Bits unit[kBlockKeys * kUnitKeys], next[kBlockKeys * kUnitKeys];
  for (int row = 0; row < strip.rows; ++row) {
    for (std::int64_t column = 0; column < strip.value_dim; column += 2 * kTile) {
      KeepSeenValues(strip, row, range, ValueUnit(strip, column), unit);
      KeepSeenValues(strip, row, range, ValueUnit(strip, column + kTile), next);
      const TwoUnits kept{reinterpret_cast<const float*>(unit), reinterpret_cast<const float*>(next)};
      ValueSums sums;
      Products::Multiply(strip.rows, ValueProduct(weights, kept, range, &sums));
      AddSums(strip, sums, row, row + 1, column, rescale);
    }
  }
}

// ---- the strip

HWY_INLINE StepRange RangeOf(const BlockTask<float>& strip) {
  const ColumnRange seen = SeenColumns(strip, 0, strip.rows);
  constexpr auto kStep32 = static_cast<std::int32_t>(kStep);
  return {seen.begin / kStep32 * kStep32, (seen.end + kStep32 - 1) / kStep32 * kStep32};
}

HWY_INLINE void RoundWeights(const float* weights, StepRange range, Bits* to) {
  for (std::int32_t c = range.begin; c < range.end; c += kStep) {
    const __m512bh rounded = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(weights + c + 16), _mm512_loadu_ps(weights + c));
    std::memcpy(to + c, &rounded, sizeof rounded);
  }
}

/// One step of the online softmax; leaves the weights in `weights` [kRows][kBlockKeys].
HWY_INLINE void Softmax(const BlockTask<float>& strip, StepRange range, float* rescale, Bits* weights) {
  const hn::ScalableTag<float> d;
  const UnitRange units{range.begin, range.end};
  float max[kRows] = {}, sum[kRows] = {};
  for (int row = 0; row < strip.rows; ++row) {
    max[row] = strip.max[row];
    if (strip.columns[row].empty()) continue;
    TransformRow(strip, row, units);
    max[row] = MaxOfRow(d, strip.scores + row * kBlockKeys, units, strip.max[row]);
  }
  for (int row = 0; row < strip.rows; ++row) {
    float* scores = strip.scores + row * kBlockKeys;
    if (strip.columns[row].empty()) {
      std::fill(scores + range.begin, scores + range.end, 0.0F);
    } else {
      sum[row] = WeighRow(d, scores, units, max[row]);
    }
    RoundWeights(scores, range, weights + row * kBlockKeys);
  }
  AdvanceRows(strip, max, sum, rescale);
}

template <class Products>
HWY_INLINE void AttendStrip(const BlockTask<float>& strip) {
  const StepRange range = RangeOf(strip);
  if (range.begin >= range.end) return;
  const std::int64_t dims = round_up(strip.key_dim, kStep);
  const auto* units = static_cast<const float*>(strip.block->keys[0]);
  for (std::int32_t column = range.begin; column < range.end; column += kStep) {
    const float* unit = units + column * (dims / 2);
    const TwoUnits keys{unit, unit + kUnitKeys * (dims / 2)};
    Products::Multiply(strip.rows, ScoreProduct(strip.queries, dims, keys, strip.scores + column));
  }
  alignas(64)
      Bits weights[kRows * kBlockKeys];  // rows behind the strip's hold anything: only their own sums see it
  float rescale[kRows];
  Softmax(strip, range, rescale, weights);
  if (strip.leave_out_hidden) return AddSeenValues<Products>(strip, weights, range, rescale);
  AddValues<Products>(strip, weights, range, rescale);
}

template <class Products>
void AttendBlock(const BlockTask<float>& tile) {
  [[maybe_unused]] const Products products{};  // holds what the instructions need for as long as it lives
  for (int first = 0; first < tile.rows; first += kRows) AttendStrip<Products>(StripAt(tile, first, kRows));
}

}  // namespace attn::HWY_NAMESPACE::bf16
HWY_POP_ATTRIBUTES
#endif  // HWY_TARGET == HWY_AVX3

#endif

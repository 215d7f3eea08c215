// The two ways in which processors multiply 16-bit numbers: matrix registers (AMX) and dot products of vectors
// (AVX-512 BF16). Both take rows of up to a strip against two units of columns: one product for q·k, one for
// weights·v. Sums of pairs are the processor's own, so the two differ in their last bits.

#if defined(ATTN_KERNELS_BF16_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_BF16_PRODUCTS_INL_H_
#undef ATTN_KERNELS_BF16_PRODUCTS_INL_H_
#else
#define ATTN_KERNELS_BF16_PRODUCTS_INL_H_
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "hwy/highway.h"
#include "src/kernels/kernels.h"

#if HWY_TARGET == HWY_AVX3
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16,amx-tile,amx-bf16")
namespace attn::HWY_NAMESPACE::bf16 {

using Bits = std::uint16_t;

inline constexpr std::int64_t kStep = 32;  // dims or keys that a matrix instruction takes
inline constexpr std::int64_t kTile = 16;  // rows and columns of a matrix register
inline constexpr int kRows = 2 * kTile;    // of a strip

/// Columns of the block that a strip works on, multiples of kStep.
struct StepRange {
  std::int32_t begin, end;
};

/// Two units of columns, each [pairs][16][2].
struct TwoUnits {
  const float* first;
  const float* second;
};

/// Where the sums of a strip's rows and 32 columns wait.
struct alignas(64) ValueSums {
  float of[kRows][2 * kTile];
};

/// What both products are: a[row][step]·b[step][column] for 32 columns, strides in numbers of their own type.
struct PairProduct {
  const Bits* a;
  std::int64_t a_row;
  TwoUnits b;  // at their first step
  std::int64_t steps;
  float* to;
  std::int64_t to_row;
};

HWY_INLINE PairProduct ScoreProduct(const float* queries, std::int64_t dims, const TwoUnits& keys, float* scores) {
  return {reinterpret_cast<const Bits*>(queries), 2 * dims, keys, dims, scores, kBlockKeys};
}

HWY_INLINE PairProduct ValueProduct(const Bits* weights, const TwoUnits& values, StepRange range, ValueSums* sums) {
  const std::int64_t first = range.begin / 2 * kUnitKeys;
  return {weights + range.begin,   kBlockKeys,  {values.first + first, values.second + first},
          range.end - range.begin, sums->of[0], 2 * kTile};
}

// ---- matrix registers

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// Up to two tiles of rows: TDPBF16PS multiplies 16 rows of 32 numbers with 32 numbers of 16 columns.
template <int kRowTiles>
HWY_INLINE void MultiplyTiles(const PairProduct& p) {
  const std::int64_t a_bytes = p.a_row * static_cast<std::int64_t>(sizeof(Bits)),
                     to_bytes = p.to_row * static_cast<std::int64_t>(sizeof(float));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t step = 0; step < p.steps; step += kStep) {
    _tile_loadd(4, p.a + step, a_bytes);
    _tile_loadd(6, p.b.first + step / 2 * kUnitKeys, 64);
    _tile_loadd(7, p.b.second + step / 2 * kUnitKeys, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (kRowTiles == 2) {
      _tile_loadd(5, p.a + kTile * p.a_row + step, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, p.to, to_bytes);
  _tile_stored(1, p.to + kTile, to_bytes);
  if constexpr (kRowTiles == 2) {
    _tile_stored(2, p.to + kTile * p.to_row, to_bytes);
    _tile_stored(3, p.to + kTile * p.to_row + kTile, to_bytes);
  }
}

/// While it lives, the thread's matrix registers have their shapes.
class MatrixProducts {
 public:
  MatrixProducts() {
    const TileShapes shapes;
    _tile_loadconfig(&shapes);
  }
  ~MatrixProducts() { _tile_release(); }
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  static HWY_INLINE void Multiply(int rows, const PairProduct& product) {
    if (rows > kTile) {
      MultiplyTiles<2>(product);
    } else {
      MultiplyTiles<1>(product);
    }
  }
};

// ---- dot products

/// VDPBF16PS adds a pair of products to each of 16 sums; 12 rows × 2 units are 24 sums in registers.
template <int kDotRows>
HWY_INLINE void MultiplyRows(const PairProduct& p, int first_row) {
  __m512 sums[kDotRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kDotRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  const Bits* a = p.a + first_row * p.a_row;
  for (std::int64_t pair = 0; pair < p.steps / 2; ++pair) {
    const auto first = reinterpret_cast<__m512bh>(_mm512_loadu_si512(p.b.first + pair * kUnitKeys));
    const auto second = reinterpret_cast<__m512bh>(_mm512_loadu_si512(p.b.second + pair * kUnitKeys));
#pragma GCC unroll 16
    for (int r = 0; r < kDotRows; ++r) {
      std::int32_t bits;
      __builtin_memcpy(&bits, a + r * p.a_row + 2 * pair, sizeof bits);
      const auto factor = reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
      sums[r][0] = _mm512_dpbf16_ps(sums[r][0], factor, first);
      sums[r][1] = _mm512_dpbf16_ps(sums[r][1], factor, second);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kDotRows; ++r) {
    _mm512_storeu_ps(p.to + (first_row + r) * p.to_row, sums[r][0]);
    _mm512_storeu_ps(p.to + (first_row + r) * p.to_row + kTile, sums[r][1]);
  }
}

class DotProducts {
 public:
  static HWY_INLINE void Multiply(int rows, const PairProduct& product) {
    int row = 0;
    for (; row + 12 <= rows; row += 12) MultiplyRows<12>(product, row);
    for (; row + 4 <= rows; row += 4) MultiplyRows<4>(product, row);
    for (; row < rows; ++row) MultiplyRows<1>(product, row);
  }
};

}  // namespace attn::HWY_NAMESPACE::bf16
HWY_POP_ATTRIBUTES
#endif  // HWY_TARGET == HWY_AVX3

#endif

// What a SIMD target offers: plain functions over packed tiles, no SIMD type in sight.
//
// Kernels know neither plan nor threads, and of a cache how its units lie: they get a tile and scratch memory. One body serves all targets
// and both precisions (T = float, double); the scalar specification says what each must compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/dtype.h"
#include "attn/isa.h"
#include "attn/numerics.h"
#include "src/units.h"

namespace attn {

/// Rows that go through the registers together; 6 rows × 4 vectors are 24 accumulators, as many as 32 registers
/// hold beside their operands.
inline constexpr int kRowGroup = 6;

/// Rows whose scores are in work at once: with kBlockKeys columns 24 KiB in f32, half of L1.
inline constexpr int kStripRows = 4 * kRowGroup;

/// Keys that are packed together where a tile of one strip packs them as it goes.
inline constexpr int kKeyPanelKeys = 64;

/// Keys whose values are added together where values are read from memory, not from L2.
inline constexpr int kValueKeys = 32;

/// Rows of a state that go through a vector together: max and sum have memory for a multiple of them.
inline constexpr int kStateRows = 8;

/// The keys of one block that a row may see by its intervals, counted from the block's start: [first, sink_end) and
/// [begin, end). Where both are empty all four are 0.
struct RowColumns {
  std::int32_t first = 0, sink_end = 0;
  std::int32_t begin = 0, end = 0;

  bool empty() const { return sink_end <= first && end <= begin; }
  std::int32_t lowest() const { return first < sink_end ? first : begin; }
  std::int32_t highest() const { return begin < end ? end : sink_end; }
  bool contains(std::int32_t c) const { return (c >= first && c < sink_end) || (c >= begin && c < end); }
};

/// Rows of a strided tensor, strides in elements.
struct SourceRows {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

/// Pieces of a block that may lie apart, at most.
inline constexpr std::int64_t kMostPieces = kBlockKeys / kUnitKeys;

/// The keys and values of one block, as a kernel reads them. Piece i is columns [i·piece_keys, (i + 1)·piece_keys).
template <class T>
struct KeyBlock {
  std::int32_t first_key = 0, end_key = 0;  // the columns that have a key
  std::int32_t piece_keys = kBlockKeys;     // a power of two, at least kUnitKeys
  // Units [key_dim][kUnitKeys] of T; values in units of kUnitKeys columns, `value_unit` from one to the next, within which
  // keys are value_stride apart (rows as the caller has them are units kUnitKeys apart). Or both as `stored` says.
  const void* keys[kMostPieces] = {};
  const void* values[kMostPieces] = {};
  const UnitLayout* stored =
      nullptr;  // units of a cache, which a tile of one strip reads as they lie; f32 arithmetic only
  const std::byte* next = nullptr;  // with `stored`: what will be read after the block
  std::int64_t value_stride = 0;
  std::int64_t value_unit = 0;
  std::int32_t first_value = 0;  // the column whose values come first in values[0]
  // A tile of one strip, which reads each key once, may leave keys[0] nullptr and give the rows themselves, which are
  // then packed panel by panel.
  SourceRows key_rows;
  T* key_panel = nullptr;  // scratch: kKeyPanelKeys keys
};

/// One query tile against one key block.
template <class T>
struct BlockTask {
  const KeyBlock<T>* block = nullptr;
  int rows = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;  // padded to a multiple of kUnitKeys

  // Groups of kRowGroup rows (the last may have fewer), each [key_dim][rows of the group]; query_stride a row.
  const T* queries = nullptr;
  std::int64_t query_stride = 0;
  const RowColumns* columns = nullptr;  // [rows]

  T score_factor = 1;             // multiplies q·k where the queries have no factor
  T cap_factor = 0;               // softcap·log2(e); 0: none
  const T* bias = nullptr;        // [rows][kBlockKeys], natural units, −∞ hides; nullptr: none
  const T* slopes = nullptr;      // [rows] ALiBi × log2(e); nullptr: none
  const T* distances = nullptr;   // [rows] the query's position from the block's start; with slopes
  bool leave_out_hidden = false;  // values of hidden keys are not even multiplied by 0 (they hold NaN or Inf)

  T* scores = nullptr;  // scratch: [kStripRows][kBlockKeys]; the result of score_block
  T* max = nullptr;     // [rows, padded to kStateRows]: the running state
  T* sum = nullptr;     // [rows, padded to kStateRows]
  T* out = nullptr;     // [rows][value_dim]
  // Scratch [kStripRows][value_dim], or nullptr: given where values are read from memory and this tile alone reads them.
  T* partial_out = nullptr;
};

template <class T>
struct KernelSet {
  /// Value columns that a kernel reads side by side.
  int panel_columns;
  /// Rows whose scores are in work at once: `scores` has memory for as many.
  int strip_rows;
  /// Packed keys have memory for dims padded to this, and blocks for keys padded to `key_step`.
  int dim_step, key_step;
  /// Keys and values may be left where they lie, and queries take the scale.
  bool reads_in_place;

  /// Advances the state of every row over the block.
  void (*attend_block)(const BlockTask<T>& task);

  /// Leaves the scores of a tile of one strip, in units of log2(e) and −∞ where hidden, in task.scores; values and state
  /// are not used. Columns that no row of a group sees are not written.
  void (*score_block)(const BlockTask<T>& task);

  /// first ← first merged with next; out rows have `columns` columns (a multiple of kUnitKeys).
  void (*merge)(int rows, std::int64_t columns, T* max, T* sum, T* out, const T* next_max, const T* next_sum,
                const T* next_out);

  /// out[c] ← out[c] / sum, zeros as +0 and NaN as the one quiet NaN; all 0 where sum is 0. Whole vectors: out has
  /// memory for `columns` rounded up to kUnitKeys.
  void (*divide_row)(T* out, std::int64_t columns, T sum);

  /// Keys to units: `count` rows become columns [first_column, first_column + count) of the block that starts at
  /// `units`; other columns of the units touched become 0.
  void (*pack_keys)(const SourceRows& keys, std::int64_t count, std::int32_t first_column, std::int64_t key_dim,
                    T* units);

  /// Values to units [keys][kUnitKeys], `unit_stride` from one to the next: `count` rows become those of columns
  /// [first_column, first_column + count); columns behind value_dim become 0.
  void (*pack_values)(const SourceRows& values, std::int64_t count, std::int32_t first_column,
                      std::int64_t value_dim, std::int64_t unit_stride, T* units);

  /// One unit of a cache, of which the first `tokens` (0 to 16) hold something, to the columns from `first_column` on of
  /// units as pack_keys and pack_values leave them. 16-bit products want 0 behind; others never read it. nullptr in f64,
  /// which no cache holds.
  void (*unpack_keys)(const UnitLayout& layout, const std::byte* unit, std::int64_t tokens,
                      std::int32_t first_column, T* units);
  void (*unpack_values)(const UnitLayout& layout, const std::byte* unit, std::int64_t tokens,
                        std::int32_t first_column, std::int64_t unit_stride, T* units);

  /// `count` query rows (at most kRowGroup) that start at `rows`, times `factor` in f64, rounded once, to
  /// [key_dim][count].
  void (*pack_queries)(const SourceRows* rows, int count, std::int64_t key_dim, double factor, T* group);

  /// row[i] ← row[i] where allowed[i] is not 0, otherwise −∞.
  void (*hide_masked)(const std::uint8_t* allowed, std::int64_t count, T* row);

  /// scores[i] ← 2^(scores[i] − max); returns their sum over kSumLanes lanes. `count` is a multiple of kUnitKeys.
  T (*weigh)(T* scores, std::int64_t count, T max);

  /// Each value x ≤ 0 becomes 2^x, and each value z tanh(z): for tests, which compare with exact values.
  void (*exp2_each)(T* values, std::int64_t count);
  void (*tanh_each)(T* values, std::int64_t count);

  /// For measuring the machine: multiply-adds on registers alone (returns how many operations; sink holds a factor,
  /// an addend and gets a result), and reading memory (returns a sum).
  double (*multiply_adds)(std::int64_t steps, T* sink);
  T (*read_all)(const T* from, std::int64_t count);
};

struct Kernels {
  KernelSet<float> f32;
  KernelSet<double> f64;
  /// f32 with 16-bit products: q, k, v and the weights rounded to bf16, and no score_block. Where `has_bf16` is false it
  /// is not to be used.
  KernelSet<float> bf16;
  bool has_bf16;

  template <class T>
  const KernelSet<T>& of() const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return f64;
    } else {
      return f32;
    }
  }
};

/// How this machine multiplies 16-bit numbers: by matrix registers (AMX, which the system must grant), by dot products
/// of vectors (AVX-512 BF16), or not at all. ATTN_BF16=dot in the environment chooses dot products where there are both.
enum class Bf16Products { none, dot, matrix };
Bf16Products bf16_products_here();

/// The kernels of a target; nullptr for Isa::scalar, which is the specification, and where this machine lacks it.
const Kernels* kernels_for(Isa isa);

}  // namespace attn

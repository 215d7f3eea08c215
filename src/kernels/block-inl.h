// One query tile against one key block: scores, one pass over them, online softmax, weighted values.
//
// A tile goes strip by strip, and each strip through all steps: its scores stay in L1. Within a strip a panel of keys
// stays in L1 while every group of rows passes over it.

#if defined(ATTN_KERNELS_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_BLOCK_INL_H_
#undef ATTN_KERNELS_BLOCK_INL_H_
#else
#define ATTN_KERNELS_BLOCK_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "src/kernels/multiply-inl.h"
#include "src/kernels/pack-inl.h"
#include "src/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Up to kRowGroup rows of a strip, and the columns that any of them sees.
struct RowGroup {
  int first_row, rows;
  std::int32_t lowest, highest;

  bool empty() const { return highest <= lowest; }
  UnitRange units() const {
    constexpr std::int32_t kUnit = static_cast<std::int32_t>(kUnitKeys);
    return {lowest / kUnit * kUnit, (highest + kUnit - 1) / kUnit * kUnit};
  }
};

template <class T>
HWY_INLINE RowGroup GroupAt(const BlockTask<T>& strip, int first_row) {
  RowGroup group{first_row, std::min(kRowGroup, strip.rows - first_row), static_cast<std::int32_t>(kBlockKeys), 0};
  for (int r = first_row; r < first_row + group.rows; ++r) {
    if (strip.columns[r].empty()) continue;
    group.lowest = std::min(group.lowest, strip.columns[r].lowest());
    group.highest = std::max(group.highest, strip.columns[r].highest());
  }
  return group;
}

/// The groups of a strip that see keys.
struct RowGroups {
  int count = 0;
  RowGroup of[kStripRows / kRowGroup];
};

template <class T>
HWY_INLINE void FindGroups(const BlockTask<T>& strip, RowGroups* groups) {
  for (int row = 0; row < strip.rows; row += kRowGroup) {
    const RowGroup group = GroupAt(strip, row);
    if (!group.empty()) groups->of[groups->count++] = group;
  }
}

/// The strip of a tile that starts at row `first`, of at most `rows` rows.
template <class T>
HWY_INLINE BlockTask<T> StripAt(const BlockTask<T>& tile, int first, int rows) {
  BlockTask<T> strip = tile;
  strip.rows = std::min(rows, tile.rows - first);
  strip.queries += first * tile.query_stride;
  strip.columns += first;
  if (tile.bias) strip.bias += first * kBlockKeys;
  if (tile.slopes) {
    strip.slopes += first;
    strip.distances += first;
  }
  strip.max += first;
  strip.sum += first;
  strip.out += first * tile.value_dim;
  return strip;
}

// ---- scores

template <int kRows, int kVectors, class T>
HWY_INLINE void StoreScores(const Operands<T>& operands, T* HWY_RESTRICT scores) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  ClearSums(d, sums);
  Multiply(d, operands, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, scores + r * kBlockKeys + v * kLanes<T>);
  }
}

// Units side by side: as many as a panel has, at least one.
inline constexpr std::int32_t kKeyPanel = std::max<std::int32_t>(kPanelColumns<float>, kUnitKeys);
static_assert(kKeyPanel <= kKeyPanelKeys);

/// Keys of a strip: the panel that starts at column `first`.
template <class T>
struct KeyPanel {
  const T* units;
  std::int32_t first;
};

/// Where keys are not packed yet, packs those of the panel.
template <class T>
HWY_INLINE KeyPanel<T> KeyPanelAt(const BlockTask<T>& strip, std::int32_t first) {
  if (strip.keys) return {strip.keys + first * strip.key_dim, first};
  const std::int32_t begin = std::max(first, strip.first_key), end = std::min(first + kKeyPanel, strip.end_key);
  if (begin < end) {
    SourceRows rows = strip.key_rows;
    rows.data += (begin - strip.first_key) * rows.row_stride * static_cast<std::int64_t>(size_of(rows.dtype));
    PackKeys(rows, end - begin, begin - first, strip.key_dim, strip.key_panel);
  }
  return {strip.key_panel, first};
}

template <int kRows, class T>
HWY_NOINLINE void ScorePanel(const KeyPanel<T>& panel, std::int64_t key_dim, const T* queries, std::int32_t begin,
                             std::int32_t end, T* scores) {
  const std::int64_t unit = key_dim * kUnitKeys;
  while (begin < end) {
    const std::int32_t column = begin - panel.first;
    const T* keys = panel.units + column / kUnitKeys * unit + column % kUnitKeys;
    const Operands<T> operands{queries, 1, kRows, keys, kUnitKeys, unit, key_dim};
    const int vectors = std::min((end - begin) / kLanes<T>, kPanelVectors);
    switch (vectors) {
      case 1: StoreScores<kRows, 1>(operands, scores + begin); break;
      case 2: StoreScores<kRows, 2>(operands, scores + begin); break;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
      case 3: StoreScores<kRows, 3>(operands, scores + begin); break;
      case 4: StoreScores<kRows, 4>(operands, scores + begin); break;
#endif
      default: return;
    }
    begin += vectors * kLanes<T>;
  }
}

template <class T>
HWY_INLINE void ScoreGroup(const BlockTask<T>& strip, const KeyPanel<T>& panel, const RowGroup& group,
                           std::int32_t begin, std::int32_t end) {
  const T* queries = strip.queries + group.first_row * strip.query_stride;
  T* scores = strip.scores + group.first_row * kBlockKeys;
  switch (group.rows) {
    case 1: return ScorePanel<1>(panel, strip.key_dim, queries, begin, end, scores);
    case 2: return ScorePanel<2>(panel, strip.key_dim, queries, begin, end, scores);
    case 3: return ScorePanel<3>(panel, strip.key_dim, queries, begin, end, scores);
    case 4: return ScorePanel<4>(panel, strip.key_dim, queries, begin, end, scores);
    case 5: return ScorePanel<5>(panel, strip.key_dim, queries, begin, end, scores);
    default: return ScorePanel<6>(panel, strip.key_dim, queries, begin, end, scores);
  }
}

template <class T>
HWY_INLINE void ScoreStrip(const BlockTask<T>& strip, const RowGroups& groups) {
  for (std::int32_t first = 0; first < kBlockKeys; first += kKeyPanel) {
    KeyPanel<T> panel{};
    for (int g = 0; g < groups.count; ++g) {
      const UnitRange units = groups.of[g].units();
      const std::int32_t begin = std::max(first, units.begin);
      const std::int32_t end = std::min(first + kKeyPanel, units.end);
      if (begin >= end) continue;
      if (!panel.units) panel = KeyPanelAt(strip, first);
      ScoreGroup(strip, panel, groups.of[g], begin, end);
    }
  }
}

// ---- one pass over the scores

template <class T>
HWY_INLINE void TransformRow(const BlockTask<T>& strip, int row, UnitRange range) {
  T* scores = strip.scores + row * kBlockKeys;
  if (strip.score_factor != 1) ScaleScores(scores, range, strip.score_factor);
  if (strip.cap_factor != 0) CapScores(scores, range, strip.cap_factor);
  if (strip.bias) AddBias(scores, range, strip.bias + row * kBlockKeys);
  if (strip.slopes) AddAlibi(scores, range, strip.slopes[row], strip.distances[row]);
  const RowColumns& columns = strip.columns[row];
  if (columns.begin > range.begin || columns.end < range.end) HideColumns(scores, range, columns);
}

/// Leaves weights in place of scores, and each row's new maximum and the sum of its weights. Maxima of a whole group
/// come before its weights: the latency of one row's maximum hides behind the other rows' work.
template <class T>
HWY_INLINE void WeighGroup(const BlockTask<T>& strip, const RowGroup& group, T* HWY_RESTRICT max,
                           T* HWY_RESTRICT sum) {
  const hn::ScalableTag<T> d;
  const UnitRange range = group.units();
  const int end = group.first_row + group.rows;
  for (int row = group.first_row; row < end; ++row) {
    TransformRow(strip, row, range);
    max[row] = MaxOfRow(d, strip.scores + row * kBlockKeys, range, strip.max[row]);
  }
  for (int row = group.first_row; row < end; ++row) {
    const T subtract = max[row] == -std::numeric_limits<T>::infinity() ? T(0) : max[row];
    sum[row] = WeighRow(d, strip.scores + row * kBlockKeys, range, subtract);
  }
}

/// Advances max and sum of all rows, and says by how much the older part of each row shrinks.
template <class T>
HWY_INLINE void AdvanceRows(const BlockTask<T>& strip, const T* HWY_RESTRICT max, const T* HWY_RESTRICT sum,
                            T* HWY_RESTRICT rescale) {
  const hn::CappedTag<T, kStateRows> d;
  for (int row = 0; row < strip.rows; row += hn::Lanes(d)) {
    const auto new_max = hn::LoadU(d, max + row);
    const auto subtract = hn::IfThenZeroElse(hn::Eq(new_max, MinusInfinity(d)), new_max);
    const auto factor = Exp2Nonpositive(d, hn::Sub(hn::LoadU(d, strip.max + row), subtract));
    hn::StoreU(factor, d, rescale + row);
    hn::StoreU(new_max, d, strip.max + row);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, strip.sum + row), factor, hn::LoadU(d, sum + row)), d, strip.sum + row);
  }
}

/// One step of the online softmax: scores become weights.
template <class T>
HWY_INLINE void SoftmaxStrip(const BlockTask<T>& strip, const RowGroups& groups, T* HWY_RESTRICT rescale) {
  T max[kStripRows] = {}, sum[kStripRows] = {};
  std::copy_n(strip.max, strip.rows, max);
  for (int g = 0; g < groups.count; ++g) WeighGroup(strip, groups.of[g], max, sum);
  AdvanceRows(strip, max, sum, rescale);
}

// ---- weighted values

/// Keys of a block whose values are added in one go. A block's sums over them may be continued: they then wait in
/// `partial`.
template <class T>
struct ValueKeys {
  std::int32_t begin, end;  // columns
  T* partial;               // [rows of the strip][value_dim]
  bool first, last;         // of the block's keys
};

template <int kRows, int kVectors, class T>
HWY_INLINE void AddWeightedValues(const Operands<T>& operands, const ValueKeys<T>& keys,
                                  const T* HWY_RESTRICT rescale, T* HWY_RESTRICT out, std::int64_t first,
                                  std::int64_t row_stride) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows][kVectors];
  ClearSums(d, sums);
  if (!keys.first) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = hn::LoadU(d, keys.partial + first + r * row_stride + v * kLanes<T>);
    }
  }
  Multiply(d, operands, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const auto factor = hn::Set(d, rescale[r]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = first + r * row_stride + v * kLanes<T>;
      if (keys.last) {
        hn::StoreU(hn::MulAdd(hn::LoadU(d, out + at), factor, sums[r][v]), d, out + at);
      } else {
        hn::StoreU(sums[r][v], d, keys.partial + at);
      }
    }
  }
}

template <int kRows, class T>
HWY_NOINLINE void ValuePanel(const BlockTask<T>& strip, const RowGroup& group, const ValueKeys<T>& keys,
                             const T* rescale, std::int64_t begin, std::int64_t end) {
  const T* weights = strip.scores + group.first_row * kBlockKeys + keys.begin;
  const T* values = strip.values + (keys.begin - strip.first_value) * strip.value_stride;
  const std::int64_t row = group.first_row * strip.value_dim;
  while (begin < end) {
    const Operands<T> operands{weights,
                               kBlockKeys,
                               1,
                               values + begin / kUnitKeys * strip.value_unit + begin % kUnitKeys,
                               strip.value_stride,
                               strip.value_unit,
                               keys.end - keys.begin};
    const int vectors = static_cast<int>(std::min<std::int64_t>((end - begin) / kLanes<T>, kPanelVectors));
    switch (vectors) {
      case 1: AddWeightedValues<kRows, 1>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
      case 2: AddWeightedValues<kRows, 2>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
      case 3: AddWeightedValues<kRows, 3>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
      case 4: AddWeightedValues<kRows, 4>(operands, keys, rescale, strip.out, row + begin, strip.value_dim); break;
#endif
      default: return;
    }
    begin += vectors * kLanes<T>;
  }
}

template <class T>
HWY_INLINE void ValueGroup(const BlockTask<T>& strip, const RowGroup& group, const ValueKeys<T>& keys,
                           const T* rescale, std::int64_t begin, std::int64_t end) {
  switch (group.rows) {
    case 1: return ValuePanel<1>(strip, group, keys, rescale, begin, end);
    case 2: return ValuePanel<2>(strip, group, keys, rescale, begin, end);
    case 3: return ValuePanel<3>(strip, group, keys, rescale, begin, end);
    case 4: return ValuePanel<4>(strip, group, keys, rescale, begin, end);
    case 5: return ValuePanel<5>(strip, group, keys, rescale, begin, end);
    default: return ValuePanel<6>(strip, group, keys, rescale, begin, end);
  }
}

/// The same sums with hidden keys left out by the mask: only where values hold NaN or Inf, which 0 does not
/// silence. A hidden key otherwise adds fma(0, value, sum) = sum, so both ways give the same bits.
template <class T>
HWY_NOINLINE void ValueRowOfSeenKeys(const BlockTask<T>& strip, int row, T rescale) {
  const hn::ScalableTag<T> d;
  const RowColumns& columns = strip.columns[row];
  const T* weights = strip.scores + row * kBlockKeys;
  const T* bias = strip.bias ? strip.bias + row * kBlockKeys : nullptr;
  for (std::int64_t column = 0; column < strip.value_dim; column += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (std::int32_t key = columns.lowest(); key < columns.highest(); ++key) {
      if (!columns.contains(key) || (bias && bias[key] == -std::numeric_limits<T>::infinity())) continue;
      const T* value = strip.values + (key - strip.first_value) * strip.value_stride +
                       column / kUnitKeys * strip.value_unit + column % kUnitKeys;
      sum = hn::MulAdd(hn::Set(d, weights[key]), hn::LoadU(d, value), sum);
    }
    T* to = strip.out + row * strip.value_dim + column;
    hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, rescale), sum), d, to);
  }
}

template <class T>
HWY_INLINE void AddValues(const BlockTask<T>& strip, const RowGroups& groups, std::int32_t begin, std::int32_t end,
                          const T* rescale) {
  for (std::int64_t panel = 0; panel < strip.value_dim; panel += kPanelColumns<T>) {
    const std::int64_t panel_end = std::min(panel + kPanelColumns<T>, strip.value_dim);
    for (int g = 0; g < groups.count; ++g) {
      const RowGroup& group = groups.of[g];
      const ValueKeys<T> keys{std::max(begin, group.lowest), std::min(end, group.highest), strip.partial_out,
                              begin <= group.lowest, end >= group.highest};
      if (keys.begin < keys.end) ValueGroup(strip, group, keys, rescale + group.first_row, panel, panel_end);
    }
  }
}

/// Values that several panels of columns read from memory go a few keys at a time, so that all panels pass over them
/// while they are in L1, and memory is read front to back.
template <class T>
HWY_INLINE void ValueStrip(const BlockTask<T>& strip, const RowGroups& groups, const T* rescale) {
  const std::int32_t step = strip.partial_out ? kValueKeys : static_cast<std::int32_t>(kBlockKeys);
  for (std::int32_t begin = 0; begin < kBlockKeys; begin += step)
    AddValues(strip, groups, begin, begin + step, rescale);
}

// ---- the kernels

template <class T>
HWY_INLINE void ScoreBlockStrip(const BlockTask<T>& strip) {
  RowGroups groups;
  FindGroups(strip, &groups);
  ScoreStrip(strip, groups);
  for (int g = 0; g < groups.count; ++g) {
    const RowGroup& group = groups.of[g];
    for (int row = group.first_row; row < group.first_row + group.rows; ++row)
      TransformRow(strip, row, group.units());
  }
}

template <class T>
HWY_INLINE void AttendBlockStrip(const BlockTask<T>& strip) {
  RowGroups groups;
  FindGroups(strip, &groups);
  ScoreStrip(strip, groups);
  T rescale[kStripRows];
  SoftmaxStrip(strip, groups, rescale);
  if (!strip.leave_out_hidden) return ValueStrip(strip, groups, rescale);
  for (int row = 0; row < strip.rows; ++row) {
    if (!strip.columns[row].empty()) ValueRowOfSeenKeys(strip, row, rescale[row]);
  }
}

template <class T>
void ScoreBlock(const BlockTask<T>& tile) {
  for (int first = 0; first < tile.rows; first += kStripRows) {
    BlockTask<T> strip = StripAt(tile, first, kStripRows);
    strip.scores += first * kBlockKeys;
    ScoreBlockStrip(strip);
  }
}

template <class T>
void AttendBlock(const BlockTask<T>& tile) {
  for (int first = 0; first < tile.rows; first += kStripRows) AttendBlockStrip(StripAt(tile, first, kStripRows));
}

/// first ← first merged with next, row by row: what merge_row in src/state.h does.
template <class T>
void MergeStates(int rows, std::int64_t columns, T* max, T* sum, T* out, const T* next_max, const T* next_sum,
                 const T* next_out) {
  const hn::ScalableTag<T> d;
  for (int r = 0; r < rows; ++r) {
    const T larger = std::max(max[r], next_max[r]);
    const T subtract = larger == -std::numeric_limits<T>::infinity() ? T(0) : larger;
    const auto first = Exp2Nonpositive(d, hn::Set(d, max[r] - subtract));
    const auto second = Exp2Nonpositive(d, hn::Set(d, next_max[r] - subtract));
    max[r] = larger;
    sum[r] = hn::GetLane(hn::MulAdd(hn::Set(d, sum[r]), first, hn::Mul(hn::Set(d, next_sum[r]), second)));
    for (std::int64_t c = r * columns; c < (r + 1) * columns; c += hn::Lanes(d)) {
      const auto next = hn::Mul(hn::LoadU(d, next_out + c), second);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, out + c), first, next), d, out + c);
    }
  }
}

template <class T>
void DivideColumns(T* out, std::int64_t columns, T sum) {
  const hn::ScalableTag<T> d;
  const auto divisor = hn::Set(d, sum), not_a_number = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  for (std::int64_t c = 0; c < columns; c += hn::Lanes(d)) {
    const auto quotient = hn::Add(hn::Div(hn::LoadU(d, out + c), divisor), hn::Zero(d));  // −0 + 0 = +0
    const auto canonical = hn::IfThenElse(hn::Eq(quotient, quotient), quotient, not_a_number);
    hn::StoreU(sum == 0 ? hn::Zero(d) : canonical, d, out + c);
  }
}

template <class T>
T Weigh(T* scores, std::int64_t count, T max) {
  const hn::ScalableTag<T> d;
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
  const T subtract = max == -std::numeric_limits<T>::infinity() ? T(0) : max;
  T sum = 0;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t here = std::min(kChunk, count - start);
    sum += WeighRow(d, scores + start, UnitRange{0, static_cast<std::int32_t>(here)}, subtract);
  }
  return sum;
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

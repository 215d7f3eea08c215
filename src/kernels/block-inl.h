// One query tile against one key block: scores, one pass over them, online softmax, weighted values.
//
// A tile goes strip by strip, and each strip through all steps: its scores stay in L1.

#if defined(ATTN_KERNELS_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_KERNELS_BLOCK_INL_H_
#undef ATTN_KERNELS_BLOCK_INL_H_
#else
#define ATTN_KERNELS_BLOCK_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "src/kernels/scores-inl.h"
#include "src/kernels/softmax-inl.h"
#include "src/kernels/strip-inl.h"
#include "src/kernels/values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
    sum[row] = WeighRow(d, strip.scores + row * kBlockKeys, range, max[row]);
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

// ---- the kernels

template <class T>
void ScoreBlock(const BlockTask<T>& strip) {
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
  ValueStrip(strip, groups, rescale);
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
  T sum = 0;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t here = std::min(kChunk, count - start);
    sum += WeighRow(d, scores + start, UnitRange{0, static_cast<std::int32_t>(here)}, max);
  }
  return sum;
}

}  // namespace attn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

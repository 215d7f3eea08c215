#include "reference/cache_steps.h"

#include <algorithm>

#include "reference/row.h"

namespace attn::reference {
namespace {

// The first `count` rows of every head.
TensorView first_rows(TensorView view, std::int64_t count) {
  view.shape[2] = count;
  return view;
}

std::vector<double> row_of(const Array& array, std::int64_t head, std::int64_t row) {
  const double* numbers = array.row(0, head, row);
  return {numbers, numbers + array.shape[3]};
}

bool sees_behind(const Inputs& inputs, std::int64_t head, std::int64_t i) {
  const Sequence& sequence = inputs.sequences.front();
  for (std::int64_t j = i + 1; j < sequence.keys; ++j) {
    if (is_visible(inputs, sequence, head, i, j)) return true;
  }
  return false;
}

}  // namespace

std::vector<CacheStep> work_through_cache(const TensorView& q, const TensorView& k, const TensorView& v,
                                          const AttentionOptions& options, std::int64_t head,
                                          std::int64_t* sees_later) {
  std::vector<CacheStep> steps;
  const Inputs whole(q, k, v, options);
  for (std::int64_t i = 0; i < q.shape[2]; ++i) {
    if (sees_behind(whole, head, i)) {
      *sees_later = i;
      return steps;
    }
    // What there is of the sequence after token i; queries stay where the whole has them.
    AttentionOptions here = options;
    here.alignment = Alignment::offset;
    here.position_offset = whole.sequences.front().offset;
    const std::int64_t length[] = {std::min(whole.sequences.front().keys, i + 1)};
    if (!options.key_lengths.empty()) here.key_lengths = length;
    const Inputs so_far(first_rows(q, i + 1), first_rows(k, i + 1), first_rows(v, i + 1), here);
    const Row row = attend(so_far, so_far.sequences.front(), head, i);
    CacheStep step;
    step.token = i;
    step.key = row_of(so_far.key, head, i);
    step.value = row_of(so_far.value, head, i);
    step.keys = row.keys;
    step.scores = row.scores;
    step.weights = row.weights;
    step.out.assign(step.value.size(), 0.0);
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      for (std::size_t c = 0; c < step.out.size(); ++c)
        step.out[c] += row.weights[n] * so_far.value.row(0, head, row.keys[n])[c];
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace attn::reference

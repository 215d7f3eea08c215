#include "diagnose/recipe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/row.h"

namespace attn::diagnose {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Positions beyond this are as good as infinite, and sums with them do not overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// e^x as a number of 32 or 16 bits has it: too large is infinity, too small 0.
double narrow_exp(double x, bool half) {
  const double e = std::exp(x);
  if (e > (half ? 65504.0 : 3.4028235e38)) return kInfinity;
  return e < (half ? 0x1p-25 : 0x1p-150) ? 0 : e;
}

// Σ q·k and Σ |q·k|, in four chains each: one chain would wait for every addition, and most of a check's time goes here.
void multiply(const double* q, const double* k, std::int64_t dim, double* sum, double* size) {
  double sums[4] = {}, sizes[4] = {};
  std::int64_t d = 0;
  for (; d + 4 <= dim; d += 4) {
    for (int lane = 0; lane < 4; ++lane) {
      const double product = q[d + lane] * k[d + lane];
      sums[lane] += product;
      sizes[lane] += std::fabs(product);
    }
  }
  for (int lane = 0; d < dim; ++d, ++lane) {
    sums[lane] += q[d] * k[d];
    sizes[lane] += std::fabs(q[d] * k[d]);
  }
  *sum = sums[0] + sums[1] + sums[2] + sums[3];
  *size = sizes[0] + sizes[1] + sizes[2] + sizes[3];
}

}  // namespace

/// A row's scores and what becomes of them. Hidden keys have taken == false.
struct RowMaker::Scores {
  std::vector<double> score, weight;
  std::vector<bool> visible;  ///< rightly seen, after the recipe's own idea of masks
  std::vector<bool> taken;    ///< in the softmax
  double magnitude = 0;       ///< the largest Σ|q·k|·scale and what is added
  double sink = -kInfinity;

  bool any_taken() const { return std::find(taken.begin(), taken.end(), true) != taken.end(); }
};

RowMaker::RowMaker(const reference::Inputs& inputs, const Recipe& recipe, Rounding rounding)
    : inputs_(inputs), recipe_(recipe), rounding_(rounding) {}

// The bound of reference/bound.h in its coarsest form, for sums in any order and any tiles; row->tolerance holds Σ|w·v|. Or,
// for coarse arithmetic, what two roundings of each score and weight may do.
void RowMaker::set_tolerance(double magnitude, double largest_score, std::int64_t keys, RecipeRow* row) const {
  const double dims = static_cast<double>(inputs_.query.shape[3]);
  const double fine = 2 * (dims + 8) * (magnitude + 1) + 2 * static_cast<double>(keys) + 24;
  const double coarse = 2 * largest_score + 6;
  for (std::size_t c = 0; c < row->out.size(); ++c) {
    const double error = rounding_.arithmetic * (rounding_.coarse ? coarse : fine) * row->tolerance[c];
    row->tolerance[c] = error + rounding_.stored * (std::fabs(row->out[c]) + error) + 0x1p-140;
  }
}

std::int64_t RowMaker::mask_batch(std::int64_t batch, std::int64_t head) const {
  if (!recipe_.repeats_mask_by_head) return batch;
  const auto sequences = static_cast<std::int64_t>(inputs_.sequences.size());
  return (batch * inputs_.query_heads() + head) % sequences;
}

std::int64_t RowMaker::keys_of(std::int64_t batch, std::int64_t head) const {
  if (recipe_.ignores_lengths || recipe_.padding_on_queries) return inputs_.key.shape[2];
  return inputs_.sequences[static_cast<std::size_t>(mask_batch(batch, head))].keys;
}

// The kv head and token that a query head reads for key j.
const double* RowMaker::grouped(const reference::Array& array, std::int64_t batch, std::int64_t head,
                                std::int64_t j) const {
  const std::int64_t group = inputs_.query_heads() / array.shape[1], keys = array.shape[2];
  switch (recipe_.groups) {
    case Groups::contiguous: return array.row(batch, head / group, j);
    case Groups::tiled: return array.row(batch, head % array.shape[1], j);
    case Groups::repeat_sequence: return array.row(batch, head / group, ((head % group) * keys + j) / group);
  }
  return nullptr;
}
const double* RowMaker::key(std::int64_t batch, std::int64_t head, std::int64_t j) const {
  return grouped(inputs_.key, batch, head, j);
}
const double* RowMaker::value(std::int64_t batch, std::int64_t head, std::int64_t j) const {
  return grouped(inputs_.value, batch, head, j);
}

bool RowMaker::is_visible(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) const {
  const AttentionOptions& options = inputs_.options;
  const reference::Sequence& sequence = inputs_.sequences[static_cast<std::size_t>(batch)];
  const std::int64_t n = sequence.queries, m = sequence.keys;
  std::int64_t p = std::clamp(sequence.offset, -kFar, kFar) + i;
  bool causal = options.causal;
  if (recipe_.causal == Causal::top_left || recipe_.causal == Causal::forced) p = i;
  if (recipe_.causal == Causal::bottom_right || recipe_.causal == Causal::forced_bottom) p = m - n + i;
  if (recipe_.causal == Causal::forced || recipe_.causal == Causal::forced_bottom) causal = true;
  if (causal) {
    switch (recipe_.causal) {
      case Causal::missing: break;
      case Causal::anti:
        if (j < p) return false;
        break;
      case Causal::diagonal_masked:
        if (j >= p) return false;
        break;
      case Causal::peek_one:
        if (j > p + 1) return false;
        break;
      case Causal::chunk_uncausal:
        if (j > std::clamp(sequence.offset, -kFar, kFar) + n - 1) return false;
        break;
      default:
        if (j > p) return false;
    }
  }
  if (j >= options.sink_tokens && !recipe_.ignores_window) {
    std::optional<std::int64_t> left = options.window_left, right = options.window_right;
    if (left) *left = std::min(*left, kFar) + recipe_.window_left_off;
    if (right) *right = std::min(*right, kFar) + recipe_.window_right_off;
    if (left && recipe_.two_sided_window) right = left;
    if (left && p - j > *left) return false;
    if (right && j - p > *right) return false;
  }
  if (recipe_.padding_on_queries && !options.key_lengths.empty() && i >= m) return false;
  if (options.mask && !recipe_.ignores_mask) {
    // A padding mask on the query axis: [.., 1, M], read at the query's place.
    const std::array<std::int64_t, 4> index{mask_batch(batch, head), head, i, recipe_.padding_on_queries ? i : j};
    if ((reference::read_at(*options.mask, index) == 0) != recipe_.inverts_mask) return false;
  }
  return !options.bias || recipe_.ignores_bias ||
         reference::read_at(*options.bias, {batch, head, i, j}) != -kInfinity;
}

double RowMaker::score(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j,
                       double* magnitude) const {
  const AttentionOptions& options = inputs_.options;
  const double scale = recipe_.scale.value_or(inputs_.scale);
  const double* q = inputs_.query.row(batch, head, i);
  const double* k = key(batch, head, j);
  double s = 0, size = 0;
  multiply(q, k, inputs_.query.shape[3], &s, &size);
  double bias = options.bias && !recipe_.ignores_bias ? reference::read_at(*options.bias, {batch, head, i, j}) : 0;
  if (bias == -kInfinity) bias = 0;  // hidden by selection
  if (recipe_.scales_bias) bias *= scale;
  s *= scale;
  size = size * std::fabs(scale) + std::fabs(bias);
  const double cap = options.softcap.value_or(0);
  if (cap > 0 && recipe_.cap == Cap::right) s = cap * std::tanh(s / cap);
  if (cap > 0 && recipe_.cap == Cap::times_tanh) s = s * std::tanh(s / cap);
  s += bias;
  if (options.alibi && !recipe_.ignores_alibi) {
    const double heads = static_cast<double>(inputs_.query_heads());
    double slope = reference::read_head(*options.alibi, head) * std::exp2(recipe_.alibi_exponent_off);
    if (recipe_.alibi_plain_slopes) slope = std::exp2(-8 * static_cast<double>(head + 1) / heads);
    const double away =
        slope * reference::distance(inputs_, inputs_.sequences[static_cast<std::size_t>(batch)], i, j);
    s -= away;
    size += std::fabs(away);
  }
  if (cap > 0 && recipe_.cap == Cap::after_mask) s = cap * std::tanh(s / cap);
  *magnitude = size + cap;
  return s;
}

RowMaker::Scores RowMaker::scores(std::int64_t batch, std::int64_t head, std::int64_t i) const {
  const AttentionOptions& options = inputs_.options;
  const std::int64_t keys = keys_of(batch, head);
  Scores row;
  row.score.assign(static_cast<std::size_t>(keys), kNone);
  row.weight.assign(static_cast<std::size_t>(keys), 0);
  row.visible.assign(static_cast<std::size_t>(keys), false);
  row.taken = row.visible;
  if (options.sinks && recipe_.sinks != Sinks::missing) row.sink = reference::read_head(*options.sinks, head);
  const bool capped_after = options.softcap && recipe_.cap == Cap::after_mask;
  for (std::int64_t j = 0; j < keys; ++j) {
    const auto n = static_cast<std::size_t>(j);
    const bool visible = is_visible(batch, head, i, j);
    row.visible[n] = visible;
    if (!visible && recipe_.hiding == Hiding::select && !capped_after) continue;
    double magnitude = 0;
    double s = score(batch, head, i, j, &magnitude);
    if (!visible) {
      switch (recipe_.hiding) {
        case Hiding::score_zero: s = 0; break;
        case Hiding::weak: s = recipe_.weak_score; break;
        case Hiding::weak_added: s += recipe_.weak_score; break;
        case Hiding::select: s = -*options.softcap; break;  // the cap of −∞
        case Hiding::after_softmax:
        case Hiding::added: break;
      }
    } else if (recipe_.hiding == Hiding::added) {
      s += 1;
    }
    row.score[n] = s;
    row.taken[n] = true;
    // A score that is far from 0 is rounded as such, even where what is added is the same for all.
    if (!visible && recipe_.hiding != Hiding::select) magnitude += std::fabs(s);
    row.magnitude = std::max(row.magnitude, magnitude);
  }
  return row;
}

// Σ over keys, in tiles whose mistakes are the recipe's.
void RowMaker::weigh_in_tiles(Scores* row) const {
  const auto keys = static_cast<std::int64_t>(row->score.size());
  const bool own = recipe_.tiles == Tiles::normalised_sum || recipe_.tiles == Tiles::normalised_mean;
  double max = -kInfinity, sum = 0, tiles = 0;
  std::vector<double> out(row->score.size(), 0.0);
  for (std::int64_t begin = 0; begin < keys; begin += recipe_.tile) {
    const auto first = static_cast<std::size_t>(begin);
    const auto last = static_cast<std::size_t>(std::min(keys, begin + recipe_.tile));
    double largest = -kInfinity, tile_sum = 0;
    for (std::size_t j = first; j < last; ++j) {
      if (row->taken[j]) largest = std::fmax(largest, row->score[j]);
    }
    if (largest == -kInfinity) continue;
    ++tiles;
    const double next = own ? largest : std::fmax(max, largest);
    const double rescale = max == -kInfinity ? 0 : std::exp(max - next);
    if (recipe_.tiles == Tiles::no_rescale_out) sum *= rescale;
    if (recipe_.tiles == Tiles::no_rescale_sum) {
      for (std::size_t j = 0; j < first; ++j) out[j] *= rescale;
    }
    for (std::size_t j = first; j < last; ++j) {
      if (!row->taken[j]) continue;
      out[j] = std::exp(row->score[j] - next);
      tile_sum += out[j];
    }
    if (own) {
      for (std::size_t j = first; j < last; ++j) out[j] /= tile_sum;
    }
    sum += tile_sum;
    max = next;
  }
  if (own) sum = recipe_.tiles == Tiles::normalised_mean ? tiles : 1;
  if (!own && row->sink > -kInfinity) sum += std::exp(row->sink - std::fmax(max, row->sink));
  for (std::size_t j = 0; j < out.size(); ++j) row->weight[j] = sum > 0 ? out[j] / sum : 0;
}

void RowMaker::weigh_over_other_axis(std::int64_t batch, std::int64_t head, std::int64_t i, Scores* row) {
  const auto keys = row->score.size();
  std::vector<double> largest(keys, -kInfinity), sums(keys, 0.0);
  const auto add = [&](const Scores& other) {
    for (std::size_t j = 0; j < std::min(keys, other.score.size()); ++j) {
      if (!other.taken[j]) continue;
      const double next = std::fmax(largest[j], other.score[j]);
      sums[j] =
          sums[j] * (largest[j] == -kInfinity ? 0 : std::exp(largest[j] - next)) + std::exp(other.score[j] - next);
      largest[j] = next;
    }
  };
  std::vector<double> logs;
  const auto found = column_sums_.find({batch, head});
  if (recipe_.softmax == Softmax::queries && found != column_sums_.end()) {
    logs = found->second;
  } else {
    if (recipe_.softmax == Softmax::queries) {
      for (std::int64_t other = 0; other < inputs_.query.shape[2]; ++other) add(scores(batch, head, other));
    } else if (recipe_.softmax == Softmax::heads) {
      for (std::int64_t other = 0; other < inputs_.query_heads(); ++other) add(scores(batch, other, i));
    } else {
      for (std::int64_t other = 0; other < inputs_.query.shape[0]; ++other) add(scores(other, head, i));
    }
    for (std::size_t j = 0; j < keys; ++j) logs.push_back(largest[j] + std::log(sums[j]));
    if (recipe_.softmax == Softmax::queries) column_sums_[{batch, head}] = logs;
  }
  for (std::size_t j = 0; j < keys; ++j) row->weight[j] = row->taken[j] ? std::exp(row->score[j] - logs[j]) : 0;
}

void RowMaker::weigh(std::int64_t batch, std::int64_t head, std::int64_t i, Scores* row) {
  if (recipe_.tiles != Tiles::none) return weigh_in_tiles(row);
  if (recipe_.softmax == Softmax::queries || recipe_.softmax == Softmax::heads || recipe_.softmax == Softmax::batch)
    return weigh_over_other_axis(batch, head, i, row);
  const std::size_t keys = row->score.size();
  if (recipe_.softmax == Softmax::scores_as_weights) {
    for (std::size_t j = 0; j < keys; ++j) row->weight[j] = row->taken[j] ? row->score[j] : 0;
    return;
  }
  double max = recipe_.sinks == Sinks::not_in_max ? -kInfinity : row->sink;
  for (std::size_t j = 0; j < keys; ++j) {
    if (row->taken[j]) max = std::fmax(max, row->score[j]);
  }
  const double shift = recipe_.subtracts_max && max > -kInfinity ? max : 0;
  const auto exponential = [&](double s) {
    return recipe_.subtracts_max ? std::exp(s - shift) : narrow_exp(s, recipe_.half_exponential);
  };
  double sum = row->sink == -kInfinity ? 0 : narrow_exp(row->sink - shift, recipe_.half_exponential);
  if (recipe_.sinks == Sinks::per_tile)
    sum *= std::ceil(static_cast<double>(keys) / static_cast<double>(recipe_.tile));
  for (std::size_t j = 0; j < keys; ++j) {
    if (!row->taken[j]) continue;
    row->weight[j] = exponential(row->score[j]);
    sum += row->weight[j];
  }
  if (recipe_.softmax == Softmax::not_divided) return;
  for (double& w : row->weight) w = sum == 0 && recipe_.subtracts_max ? 0 : w / sum;
  if (recipe_.softmax != Softmax::twice) return;
  double again = 0;
  for (std::size_t j = 0; j < keys; ++j) again += row->taken[j] ? std::exp(row->weight[j]) : 0;
  for (std::size_t j = 0; j < keys; ++j) row->weight[j] = row->taken[j] ? std::exp(row->weight[j]) / again : 0;
}

RecipeRow RowMaker::mix(std::int64_t batch, std::int64_t head, const Scores& row) const {
  const auto columns = static_cast<std::size_t>(inputs_.value_dim());
  RecipeRow result{std::vector<double>(columns, 0.0), std::vector<double>(columns, 0.0)};
  const auto keys = static_cast<double>(row.score.size());
  const bool empty_means = recipe_.empty_row_means && !row.any_taken();
  std::vector<double> sizes(columns, 0.0);
  if (recipe_.empty_row_is_nan && !row.any_taken()) result.out.assign(columns, kNone);
  for (std::size_t j = 0; j < row.score.size(); ++j) {
    const bool counts = recipe_.hiding == Hiding::after_softmax ? row.visible[j] : row.taken[j];
    const double w = empty_means ? 1 / keys : row.weight[j];
    if (!counts && !empty_means) continue;
    const double* v = value(batch, head, static_cast<std::int64_t>(j));
    for (std::size_t c = 0; c < columns; ++c) {
      result.out[c] += w * v[c];
      sizes[c] += std::fabs(w * v[c]);
    }
  }
  double largest = 0;
  for (std::size_t j = 0; j < row.score.size(); ++j) {
    if (row.taken[j] && row.weight[j] > 0) largest = std::fmax(largest, std::fabs(row.score[j]));
  }
  result.tolerance = std::move(sizes);
  set_tolerance(row.magnitude, largest, static_cast<std::int64_t>(row.score.size()), &result);
  return result;
}

RecipeRow RowMaker::attended(std::int64_t batch, std::int64_t head, std::int64_t i) {
  Scores row = scores(batch, head, i);
  weigh(batch, head, i, &row);
  return mix(batch, head, row);
}

// Heads as the sequence, and tokens as heads: where queries and keys are as many, and so are their heads.
RecipeRow RowMaker::across_heads(std::int64_t batch, std::int64_t head, std::int64_t i) const {
  const std::int64_t heads = inputs_.query_heads();
  const auto columns = static_cast<std::size_t>(inputs_.value_dim());
  RecipeRow result{std::vector<double>(columns, 0.0), std::vector<double>(columns, 0.0)};
  std::vector<double> scores;
  double max = -kInfinity, sum = 0, magnitude = 0;
  for (std::int64_t other = 0; other < (inputs_.options.causal ? head + 1 : heads); ++other) {
    const double *q = inputs_.query.row(batch, head, i), *k = inputs_.key.row(batch, other, i);
    double s = 0, size = 0;
    multiply(q, k, inputs_.query.shape[3], &s, &size);
    scores.push_back(s * recipe_.scale.value_or(inputs_.scale));
    magnitude = std::max(magnitude, size * std::fabs(inputs_.scale));
    max = std::fmax(max, scores.back());
  }
  for (const double s : scores) sum += std::exp(s - max);
  for (std::size_t other = 0; other < scores.size(); ++other) {
    const double w = std::exp(scores[other] - max) / sum;
    const double* v = inputs_.value.row(batch, static_cast<std::int64_t>(other), i);
    for (std::size_t c = 0; c < columns; ++c) {
      result.out[c] += w * v[c];
      result.tolerance[c] += std::fabs(w * v[c]);
    }
  }
  set_tolerance(magnitude, std::fabs(max), heads, &result);
  return result;
}

RecipeRow RowMaker::row(std::int64_t batch, std::int64_t head, std::int64_t i) {
  if (recipe_.merges_without_transpose) {
    // [H, N] rows, read as [N, H].
    const std::int64_t n = inputs_.query.shape[2], at = i * inputs_.query_heads() + head;
    head = at / n;
    i = at % n;
  }
  if (recipe_.splits_without_transpose) {
    // [N, H] rows, read as [H, N].
    const std::int64_t heads = inputs_.query_heads(), at = head * inputs_.query.shape[2] + i;
    head = at % heads;
    i = at / heads;
  }
  return recipe_.attends_across_heads ? across_heads(batch, head, i) : attended(batch, head, i);
}

}  // namespace attn::diagnose

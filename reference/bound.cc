// The error bound, and where its constants come from.
//
// Every operation rounds once: its result is wrong by a factor 1 + ε, |ε| ≤ u. Count them, in the order of
// attn/numerics.h, for one score and one output element.
//
// c₁, the product q·k: one fma for each of the Dk terms, each wrong by at most u·Σ|q_d k_d|: Dk. Around it: q times
//   scale·log2(e), or the product times scale, times log2(e) and both constants rounded; softcap's division; the
//   additions of bias and ALiBi: 6 at most. Rounding errors mostly cancel, and √Dk would do for random inputs; but
//   constant inputs round the same way every time, and a judge that errs there is worse than a bound that is two or
//   three times wider. So c₁ = Dk + 6.
// c₃, what is added to a score beside the product: the same 6. tanh made from exp is wrong by a few u absolutely,
//   which softcap multiplies. score − max rounds once, in natural units by u·|score − max|; steps of the running
//   maximum add up to the same distance.
// Weights: exp2 is good to 1 ulp = 2u, for the weight itself and for each factor exp2(old max − new max) that it meets
//   later: one for every fold of a block (8 in a segment of 2,048 keys) or of a segment. A relative error ε_j of w_j
//   moves out by w_j ε_j (v_j − out) once weights are normalised, hence the factors |v_j − out|.
// c₂, the sums: a chain of 256 keys in a block, then one fma a fold, for values; 4 additions a lane, 6 to fold the 64
//   lanes and one fma a fold for the sum of weights; 2 to divide. So c₂ = min(M, 256) + 12 + 2·folds.
// In any order: a chain of M keys, and a fold for every tile of 16.
// In float64 no engine is held to blocks, and the judge rounds just as coarsely in one chain of M keys: there M stands
//   for 256, and everything counts twice.
// Underflow: with t the smallest normal number, a result below it is wrong by at most u·t, and a weight that is flushed
//   to 0 (the engine's exp2 does so below √2·t) by less than 2·t; both are added.
#include "reference/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attn/numerics.h"
#include "reference/inputs.h"
#include "reference/row.h"

namespace attn::reference {
namespace {

constexpr double kAroundTheProduct = 6;
constexpr double kExpRoundings = 2;
constexpr double kSumRoundings = 12;

// Tiles of other engines are at least so long: a fold for each.
constexpr std::int64_t kSmallestTile = 16;

// A binary floating-point type: its unit roundoff and the ends of its range.
struct Precision {
  double roundoff;
  double smallest_normal;  // exp2 may flush below twice this
  double smallest;
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return {0x1p-53, 0x1p-1022, 0x1p-1074};
    case DType::f16: return {0x1p-11, 0x1p-14, 0x1p-24};
    case DType::bf16: return {0x1p-8, 0x1p-126, 0x1p-133};
    default: return {0x1p-24, 0x1p-126, 0x1p-149};
  }
}

// How many roundings of each kind a row of M keys meets.
struct Roundings {
  double product;  ///< c₁
  double around;   ///< c₃
  double weight;   ///< relative, of one weight
  double sum;      ///< c₂
};

Roundings roundings_of(std::int64_t key_dim, std::int64_t keys, DType compute, SumOrder order) {
  const bool any = order == SumOrder::any;
  const double blocks =
      std::ceil(static_cast<double>(keys) / static_cast<double>(any ? kSmallestTile : kBlockKeys));
  const double segments = std::ceil(static_cast<double>(keys) / kSegmentKeys);
  constexpr std::int64_t kSegmentBlocks = kSegmentKeys / kBlockKeys;
  const double folds = any ? blocks : std::min(blocks, static_cast<double>(kSegmentBlocks)) + segments;
  const double times = compute == DType::f64 ? 2 : 1;
  const double chain = static_cast<double>(compute == DType::f64 || any ? keys : std::min(keys, kBlockKeys));
  return {times * (static_cast<double>(key_dim) + kAroundTheProduct), times * kAroundTheProduct,
          times * kExpRoundings * (1 + folds), times * (chain + kSumRoundings + 2 * folds)};
}

// scale · Σ|q·k|, with room for what underflows on the way.
double product_magnitude(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i,
                         std::int64_t j, double smallest_normal) {
  const double* q = inputs.query.row(sequence.tensor_batch, head, sequence.first_query + i);
  const double* k = inputs.key.row(sequence.tensor_batch, inputs.key_head(head), sequence.first_key + j);
  double magnitude = smallest_normal;
  for (std::int64_t d = 0; d < inputs.query.shape[3]; ++d) {
    magnitude += (std::fabs(inputs.scale * q[d]) + smallest_normal) * std::fabs(k[d]);
  }
  return magnitude;
}

// b_j: what a score carries beside the product.
double magnitude_beside(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i,
                        std::int64_t j, double below_max) {
  const AttentionOptions& options = inputs.options;
  double magnitude = below_max + options.softcap.value_or(0);
  if (options.bias) magnitude += std::fabs(read_at(*options.bias, {sequence.index, head, i, j}));
  if (options.alibi) magnitude += std::fabs(read_head(*options.alibi, head) * distance(inputs, sequence, i, j));
  return magnitude;
}

// The bounds of one row: errors of scores and weights once for the row, then element by element.
class RowBound {
 public:
  RowBound(const Inputs& inputs, const Sequence& sequence, std::int64_t head, std::int64_t i, DType compute,
           SumOrder order)
      : inputs_(inputs),
        sequence_(sequence),
        head_(head),
        precision_(precision_of(compute)),
        roundings_(roundings_of(inputs.query.shape[3], sequence.keys, compute, order)),
        row_(attend(inputs, sequence, head, i)) {
    measure_scores(i);
  }

  double of_out(double out, std::int64_t column, DType stored) const {
    if (!std::isfinite(out)) return 0;
    double moved = out == 0 ? 0 : sink_error_ * std::fabs(out);
    // Underflow costs a step of the sum as much whatever its weight: a sink that takes nearly all leaves it as it is.
    double summed = row_.keys.empty() ? 0 : precision_.smallest_normal * roundings_.sum * precision_.roundoff;
    double farthest = inputs_.options.sinks ? std::fabs(out) : 0;
    for (std::size_t n = 0; n < row_.keys.size(); ++n) {
      const double v = inputs_.value.row(sequence_.tensor_batch, inputs_.key_head(head_),
                                         sequence_.first_key + row_.keys[n])[column];
      if (v != out) moved += weight_errors_[n] * std::fabs(v - out);
      farthest = std::max(farthest, std::fabs(v - out));
      summed += row_.weights[n] * std::fabs(v) * roundings_.sum * precision_.roundoff +
                2 * precision_.smallest_normal * std::fabs(v);
    }
    // However wrong the weights, an average stays among what it averages.
    const double error = std::min(moved, farthest) + summed;
    const Precision storing = precision_of(stored);
    return error + storing.roundoff * (std::fabs(out) + error) + storing.smallest / 2;
  }

  double of_lse() const {
    if (!std::isfinite(row_.lse)) return 0;
    const double around = roundings_.around * (std::fabs(row_.max) + std::fabs(row_.lse) + 1);
    return largest_score_error_ + precision_.roundoff * (roundings_.sum + around);
  }

 private:
  // A weight's error follows from its score's: δ in the score is a factor e^δ in the weight.
  void measure_scores(std::int64_t i) {
    std::vector<double> beside;
    double product = 0;
    for (std::size_t n = 0; n < row_.keys.size(); ++n) {
      beside.push_back(
          magnitude_beside(inputs_, sequence_, head_, i, row_.keys[n], std::fabs(row_.max - row_.scores[n])));
      if (row_.weights[n] > 0) {
        product = std::max(
            product, product_magnitude(inputs_, sequence_, head_, i, row_.keys[n], precision_.smallest_normal));
      }
    }
    double least_sum = 0;
    for (std::size_t n = 0; n < row_.keys.size(); ++n) {
      weight_errors_.push_back(weight_error(row_.weights[n], product, beside[n], &least_sum));
    }
    if (inputs_.options.sinks) {
      const double sink = read_head(*inputs_.options.sinks, head_);
      sink_error_ = weight_error(row_.sink_weight, 0, std::fabs(sink) + std::fabs(row_.max - sink), &least_sum);
    }
    if (least_sum == 0) return;
    for (double& error : weight_errors_) error /= least_sum;
    sink_error_ /= least_sum;
  }

  // How far a weight may be off, before all are divided by the least that their sum may become.
  double weight_error(double weight, double product, double beside, double* least_sum) {
    if (!(weight > 0)) return 0;
    const double delta =
        precision_.roundoff * (roundings_.product * product + roundings_.around * beside + roundings_.weight);
    *least_sum += weight * std::exp(-delta);
    largest_score_error_ = std::max(largest_score_error_, delta);
    return weight * std::expm1(delta);
  }

  const Inputs& inputs_;
  const Sequence& sequence_;
  std::int64_t head_;
  Precision precision_;
  Roundings roundings_;
  Row row_;
  std::vector<double> weight_errors_;  // of each visible key's weight; infinite where nothing is known of it
  double sink_error_ = 0;
  double largest_score_error_ = 0;  // of any score
};

}  // namespace

Bounds error_bounds(const Result& expected, const TensorView& q, const TensorView& k, const TensorView& v,
                    const AttentionOptions& options, DType compute, DType stored, SumOrder order) {
  const Inputs inputs(q, k, v, options);
  Bounds bounds{std::vector<double>(expected.out.size()), std::vector<double>(expected.lse.size())};
  for (const Sequence& sequence : inputs.sequences) {
    for (std::int64_t head = 0; head < expected.heads; ++head) {
      for (std::int64_t i = 0; i < sequence.queries; ++i) {
        const RowBound row(inputs, sequence, head, i, compute, order);
        const std::int64_t index =
            (sequence.tensor_batch * expected.heads + head) * expected.queries + sequence.first_query + i;
        bounds.lse[index] = row.of_lse();
        for (std::int64_t c = 0; c < expected.value_dim; ++c) {
          const std::int64_t element = index * expected.value_dim + c;
          bounds.out[element] = row.of_out(expected.out[element], c, stored);
        }
      }
    }
  }
  return bounds;
}

bool agrees(double actual, double expected, double bound) {
  if (std::isnan(expected)) return std::isnan(actual);
  return actual == expected || std::fabs(actual - expected) <= bound;
}

}  // namespace attn::reference

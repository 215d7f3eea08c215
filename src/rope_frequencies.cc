// How fast each pair turns.
#include <algorithm>
#include <cmath>
#include <exception>
#include <numbers>
#include <utility>

#include "attn/rope.h"
#include "src/sentence.h"

namespace attn {
namespace {

Status check_rotary_dim(std::int64_t rotary_dim, std::int64_t head_dim) {
  constexpr std::int64_t kMost = 1 << 20;
  if (rotary_dim > kMost)
    return error("rotary_dim: ", rotary_dim, "; no more than ", kMost, " numbers of a row can turn");
  if (rotary_dim >= 2 && rotary_dim % 2 == 0 && rotary_dim <= head_dim) return {};
  return error("rotary_dim: ", rotary_dim, ", but rows have ", head_dim,
               " numbers; it is even, at least 2 and no more than they have");
}

Status check_unused(const RopeOptions& o) {
  const RopeOptions unset;
  const bool yarn = o.scaling == RopeScaling::yarn;
  if (o.scaling == RopeScaling::none && o.factor != 1)
    return error("factor: ", o.factor, " without a scaling; choose linear, ntk or yarn");
  if (!yarn && (o.original_length != 0 || o.attention_factor || o.beta_fast != unset.beta_fast ||
                o.beta_slow != unset.beta_slow)) {
    return error(o.original_length != 0 ? "original_length"
                 : o.attention_factor   ? "attention_factor"
                                        : "beta_fast, beta_slow",
                 ": given, but only yarn uses it; set scaling to yarn, or leave it out");
  }
  return {};
}

Status check_scaling(const RopeOptions& o) {
  if (o.scaling > RopeScaling::yarn)
    return error("scaling: ", static_cast<int>(o.scaling), "; it is none, linear, ntk or yarn");
  ATTN_RETURN_IF_ERROR(check_unused(o));
  if (o.scaling == RopeScaling::none) return {};
  if (!(o.factor >= 1 && std::isfinite(o.factor))) return error("factor: ", o.factor, "; it is at least 1");
  if (o.scaling != RopeScaling::yarn) return {};
  if (o.original_length < 1)
    return error("original_length: ", o.original_length, "; yarn needs the context length of the training");
  if (!(o.beta_slow >= 1e-6 && o.beta_fast > o.beta_slow && o.beta_fast <= 1e6)) {
    return error("beta_fast, beta_slow: ", o.beta_fast, " and ", o.beta_slow,
                 "; fast is above slow, and both are between 1e-6 and 1e6");
  }
  if (o.attention_factor && !(std::fabs(*o.attention_factor) <= 1e6))
    return error("attention_factor: ", *o.attention_factor, "; it is between -1e6 and 1e6");
  return {};
}

// The pair (as a real number) that turns `turns` times within the training's context.
double pair_of_turns(double turns, const RopeOptions& o, double rotary_dim) {
  const double positions_a_turn = static_cast<double>(o.original_length) / turns;
  return rotary_dim * std::log(positions_a_turn / (2 * std::numbers::pi)) / (2 * std::log(o.base));
}

// 1 where a pair keeps its frequency, 0 where it is divided by the factor.
void scale_yarn(const RopeOptions& o, std::int64_t rotary_dim, std::vector<double>* frequencies) {
  const auto dim = static_cast<double>(rotary_dim);
  const double low = std::max(std::floor(pair_of_turns(o.beta_fast, o, dim)), 0.0);
  double high = std::min(std::ceil(pair_of_turns(o.beta_slow, o, dim)), dim - 1);
  if (low == high) high += 0.001;  // as in the paper's code
  for (std::size_t i = 0; i < frequencies->size(); ++i) {
    const double kept = 1 - std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    double& frequency = (*frequencies)[i];
    frequency = frequency * kept + frequency / o.factor * (1 - kept);
  }
}

void compute_frequencies(const RopeOptions& o, std::int64_t rotary_dim, std::vector<double>* frequencies) {
  const auto dim = static_cast<double>(rotary_dim);
  double base = o.base;
  if (o.scaling == RopeScaling::ntk && rotary_dim > 2) base *= std::pow(o.factor, dim / (dim - 2));
  frequencies->assign(static_cast<std::size_t>(rotary_dim / 2), 0);
  for (std::size_t i = 0; i < frequencies->size(); ++i) {
    (*frequencies)[i] = std::pow(base, -2 * static_cast<double>(i) / dim);
    if (o.scaling == RopeScaling::linear) (*frequencies)[i] /= o.factor;
  }
  if (o.scaling == RopeScaling::yarn) scale_yarn(o, rotary_dim, frequencies);
}

Status no_memory(std::size_t positions, std::int64_t pairs) {
  return error("positions: a table of ", positions, " rows for ", pairs,
               " pairs could not be had; rotate fewer at a time");
}

}  // namespace

Status rope_frequencies(const RopeOptions& o, std::int64_t head_dim, std::vector<double>* frequencies) {
  const std::int64_t rotary_dim = o.rotary_dim == 0 ? head_dim : o.rotary_dim;
  ATTN_RETURN_IF_ERROR(check_rotary_dim(rotary_dim, head_dim));
  if (!(o.base > 1 && std::isfinite(o.base))) return error("base: ", o.base, "; it is above 1");
  ATTN_RETURN_IF_ERROR(check_scaling(o));
  try {
    compute_frequencies(o, rotary_dim, frequencies);
  } catch (const std::exception&) {  // bad_alloc, or a length that no vector has
    return no_memory(1, rotary_dim / 2);
  }
  return {};
}

Status rope_table(std::span<const double> frequencies, double attention_factor,
                  std::span<const std::int64_t> positions, RopeTable* table) {
  RopeTable made{
      static_cast<std::int64_t>(positions.size()), static_cast<std::int64_t>(frequencies.size()), {}, {}};
  try {
    made.cos.reserve(positions.size() * frequencies.size());
    made.sin.reserve(positions.size() * frequencies.size());
    for (const std::int64_t position : positions) {
      for (const double frequency : frequencies) {
        const double angle = static_cast<double>(position) * frequency;
        made.cos.push_back(static_cast<float>(std::cos(angle) * attention_factor));
        made.sin.push_back(static_cast<float>(std::sin(angle) * attention_factor));
      }
    }
  } catch (const std::exception&) {
    return no_memory(positions.size(), made.pairs);
  }
  *table = std::move(made);
  return {};
}

Status rope_table(const RopeOptions& o, std::int64_t head_dim, std::span<const std::int64_t> positions,
                  RopeTable* table) {
  std::vector<double> frequencies;
  ATTN_RETURN_IF_ERROR(rope_frequencies(o, head_dim, &frequencies));
  double length = 1;
  if (o.scaling == RopeScaling::yarn) length = o.attention_factor.value_or(0.1 * std::log(o.factor) + 1);
  return rope_table(frequencies, length, positions, table);
}

}  // namespace attn

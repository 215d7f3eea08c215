#include "diagnose/probe.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

namespace attn::diagnose {
namespace {

using reference::Array;
using reference::Inputs;

Array array_of(std::array<std::int64_t, 4> shape) {
  Array array;
  array.shape = shape;
  array.values.assign(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]), 0.0);
  return array;
}

double& at(Array& array, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
  return array.values[static_cast<std::size_t>(((b * array.shape[1] + h) * array.shape[2] + row) * array.shape[3] +
                                               column)];
}

// What goes wrong around attention, of several forms; nothing where more than one does.
std::optional<Around> around_of(std::span<const Form* const> forms) {
  Around around = Around::nothing;
  for (const Form* form : forms) {
    if (form->around == Around::nothing) continue;
    if (around != Around::nothing) return std::nullopt;
    around = form->around;
  }
  return around;
}

bool is_any(Around around, std::initializer_list<Around> of) {
  return std::find(of.begin(), of.end(), around) != of.end();
}

// Turns the pairs of each row by position × frequency.
void rotate(Array* array, double first, double step, double factor, bool interleaved) {
  const std::int64_t pairs = array->shape[3] / 2;
  for (std::int64_t h = 0; h < array->shape[1]; ++h) {
    for (std::int64_t row = 0; row < array->shape[2]; ++row) {
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        const double frequency =
            std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(2 * pairs));
        const double angle = factor * (first + step * static_cast<double>(row)) * frequency;
        double& x = at(*array, 0, h, row, interleaved ? 2 * pair : pair);
        double& y = at(*array, 0, h, row, interleaved ? 2 * pair + 1 : pair + pairs);
        const double turned = x * std::cos(angle) - y * std::sin(angle);
        y = x * std::sin(angle) + y * std::cos(angle);
        x = turned;
      }
    }
  }
}

bool prepare_rope(Around around, Inputs* inputs) {
  if (!is_any(around, {Around::nothing, Around::rope_other_layout, Around::rope_query_at_zero, Around::rope_doubled,
                       Around::rope_one_late}))
    return false;
  const double last = static_cast<double>(inputs->key.shape[2] - inputs->query.shape[2]);
  const bool interleaved = around == Around::rope_other_layout;
  const double factor = around == Around::rope_doubled ? 2 : 1;
  double first = around == Around::rope_query_at_zero ? 0 : last;
  if (around == Around::rope_one_late) first += 1;
  rotate(&inputs->query, first, 1, factor, interleaved);
  rotate(&inputs->key, 0, 1, factor, interleaved);
  return true;
}

// Which third of the columns q, k and v take.
std::optional<std::array<std::int64_t, 3>> order_of(Around around) {
  switch (around) {
    case Around::nothing: return {{0, 1, 2}};
    case Around::order_q_v_k: return {{0, 2, 1}};
    case Around::order_k_q_v: return {{1, 0, 2}};
    case Around::order_v_q_k: return {{1, 2, 0}};
    case Around::order_k_v_q: return {{2, 0, 1}};
    case Around::order_v_k_q: return {{2, 1, 0}};
    default: return std::nullopt;
  }
}

bool prepare_projection(const ProbeCase& probe, Around around, Inputs* inputs) {
  const auto order = order_of(around);
  if (!order && around != Around::order_by_head) return false;
  const Array x = reference::read(probe.find("x")->view()), w = reference::read(probe.find("w")->view());
  constexpr std::int64_t kHeads = 2, kDim = 4;
  Array* parts[] = {&inputs->query, &inputs->key, &inputs->value};
  for (std::int64_t part = 0; part < 3; ++part) {
    *parts[part] = array_of({1, kHeads, x.shape[2], kDim});
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t row = 0; row < x.shape[2]; ++row) {
        for (std::int64_t d = 0; d < kDim; ++d) {
          const std::int64_t column = order ? ((*order)[static_cast<std::size_t>(part)] * kHeads + h) * kDim + d
                                            : (h * 3 + part) * kDim + d;
          double sum = 0;
          for (std::int64_t c = 0; c < x.shape[3]; ++c) sum += x.row(0, 0, row)[c] * w.row(0, 0, c)[column];
          at(*parts[part], 0, h, row, d) = sum;
        }
      }
    }
  }
  return true;
}

bool prepare_strided(const ProbeCase& probe, Around around, Inputs* inputs) {
  if (!is_any(around, {Around::nothing, Around::strides_of_all, Around::strides_of_q, Around::strides_of_k,
                       Around::strides_of_v}))
    return false;
  const auto read = [&](const char* name, bool ignores, Array* array) {
    const Array memory = reference::read(probe.find(name)->view());
    *array = array_of({memory.shape[0], memory.shape[2], memory.shape[1], memory.shape[3]});
    if (ignores) {
      array->values = memory.values;
      return;
    }
    for (std::int64_t row = 0; row < memory.shape[1]; ++row) {
      for (std::int64_t h = 0; h < memory.shape[2]; ++h) {
        for (std::int64_t d = 0; d < memory.shape[3]; ++d) at(*array, 0, h, row, d) = memory.row(0, row, h)[d];
      }
    }
  };
  const bool all = around == Around::strides_of_all;
  read("q_bnhd", all || around == Around::strides_of_q, &inputs->query);
  read("k_bnhd", all || around == Around::strides_of_k, &inputs->key);
  read("v_bnhd", all || around == Around::strides_of_v, &inputs->value);
  return true;
}

// The case's q, k and v, as the mistake around attention prepares them.
std::optional<Inputs> prepare(const ProbeCase& probe, const AttentionOptions& options, Around around) {
  const ProbeTensor none{"", {1, 1, 1, 1}, {0.0F}, {}};
  const auto tensor = [&](const char* name) { return probe.find(name) ? probe.find(name)->view() : none.view(); };
  Inputs inputs(tensor("q"), tensor("k"), tensor("v"), options);
  bool applies = around == Around::nothing;
  if (probe.kind == ProbeKind::rope) applies = prepare_rope(around, &inputs);
  if (probe.kind == ProbeKind::projection) applies = prepare_projection(probe, around, &inputs);
  if (probe.kind == ProbeKind::strided) applies = prepare_strided(probe, around, &inputs);
  if (!applies) return std::nullopt;
  if (probe.kind == ProbeKind::projection || probe.kind == ProbeKind::strided) {
    inputs.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(inputs.query.shape[3])));
    inputs.sequences = {{0, 0, 0, 0, inputs.query.shape[2], inputs.key.shape[2], 0}};
  }
  return inputs;
}

std::optional<ProbeAnswer> merged(const ProbeCase& probe, Around around, Rounding rounding) {
  if (!is_any(around,
              {Around::nothing, Around::lse_base_2, Around::lse_base_e, Around::lse_added, Around::parts_averaged}))
    return std::nullopt;
  const Array outs = reference::read(probe.find("outs")->view()),
              lses = reference::read(probe.find("lses")->view());
  ProbeAnswer answer;
  for (std::int64_t h = 0; h < outs.shape[1]; ++h) {
    for (std::int64_t row = 0; row < outs.shape[2]; ++row) {
      double weights[2];
      for (std::int64_t part = 0; part < 2; ++part) {
        const double lse = lses.row(0, part, h)[row];
        switch (around) {
          case Around::lse_base_2: weights[part] = std::exp2(lse); break;
          case Around::lse_base_e: weights[part] = std::exp(lse * std::numbers::log2e); break;
          case Around::lse_added: weights[part] = lse; break;
          case Around::parts_averaged: weights[part] = 1; break;
          default: weights[part] = std::exp(lse);
        }
      }
      for (std::int64_t c = 0; c < outs.shape[3]; ++c) {
        const double a = outs.row(0, h, row)[c], b = outs.row(1, h, row)[c];
        answer.out.push_back((weights[0] * a + weights[1] * b) / (weights[0] + weights[1]));
        answer.tolerance.push_back((64 * rounding.arithmetic + rounding.stored) * (std::fabs(a) + std::fabs(b)) +
                                   1e-30);
      }
    }
  }
  return answer;
}

AttentionOptions options_of(const ProbeCase& probe, const std::vector<float>& slopes) {
  AttentionOptions options = probe.options;
  options.key_lengths = probe.lengths;
  if (const ProbeTensor* mask = probe.find("mask")) options.mask = mask->view();
  if (const ProbeTensor* bias = probe.find("bias")) options.bias = bias->view();
  if (const ProbeTensor* sinks = probe.find("sinks")) options.sinks = sinks->view();
  if (!slopes.empty())
    options.alibi = TensorView(slopes.data(), DType::f32, {static_cast<std::int64_t>(slopes.size())});
  return options;
}

}  // namespace

std::optional<ProbeAnswer> answer_of(const ProbeCase& probe, std::span<const Form* const> forms,
                                     Rounding rounding) {
  const auto around = around_of(forms);
  if (!around) return std::nullopt;
  if (probe.kind == ProbeKind::merge) {
    const bool others =
        std::any_of(forms.begin(), forms.end(), [](const Form* form) { return form->around == Around::nothing; });
    return others ? std::nullopt : merged(probe, *around, rounding);
  }
  const std::vector<float> slopes =
      probe.alibi ? alibi_slopes(static_cast<int>(probe.out_shape[1])) : std::vector<float>();
  const AttentionOptions options = options_of(probe, slopes);
  std::optional<Inputs> inputs = prepare(probe, options, *around);
  if (!inputs) return std::nullopt;
  Recipe recipe;
  for (const Form* form : forms) {
    if (form->change_inputs && !form->change_inputs(&*inputs)) return std::nullopt;
    if (form->change_recipe && !form->change_recipe(*inputs, &recipe)) return std::nullopt;
  }
  RowMaker maker(*inputs, recipe, rounding);
  ProbeAnswer answer;
  for (std::int64_t b = 0; b < inputs->query.shape[0]; ++b) {
    for (std::int64_t h = 0; h < inputs->query.shape[1]; ++h) {
      for (std::int64_t i = 0; i < inputs->query.shape[2]; ++i) {
        const RecipeRow row = maker.row(b, h, i);
        answer.out.insert(answer.out.end(), row.out.begin(), row.out.end());
        answer.tolerance.insert(answer.tolerance.end(), row.tolerance.begin(), row.tolerance.end());
      }
    }
  }
  return answer;
}

bool is_answer(const ProbeAnswer& answer, std::span<const double> numbers) {
  if (numbers.size() != answer.out.size()) return false;
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const double a = numbers[n], b = answer.out[n];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::fabs(a - b) <= answer.tolerance[n])) return false;
  }
  return true;
}

}  // namespace attn::diagnose

#include "diagnose/worked_mistake.h"

#include <algorithm>
#include <cmath>

#include "diagnose/catalogue.h"
#include "diagnose/recipe.h"

namespace attn::diagnose {
namespace {

using reference::Matrix;

// A trace's matrix [N, H·D] as numbers [H, N, D].
std::vector<double> by_head(const Matrix& matrix, std::int64_t heads) {
  std::vector<double> numbers;
  const std::size_t dim = matrix.front().size() / static_cast<std::size_t>(heads);
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
    for (const std::vector<double>& row : matrix)
      numbers.insert(numbers.end(), row.begin() + static_cast<std::ptrdiff_t>(h * dim),
                     row.begin() + static_cast<std::ptrdiff_t>((h + 1) * dim));
  }
  return numbers;
}

// The worked example as the recipe takes it.
class Example {
 public:
  Example(const reference::Problem& problem, const reference::Trace& trace)
      : heads_(problem.heads),
        rows_(static_cast<std::int64_t>(trace.tokens.size())),
        q_(by_head(trace.q, heads_)),
        k_(by_head(trace.k, heads_)),
        v_(by_head(trace.v, heads_)),
        inputs_(view(q_), view(k_), view(v_), problem.options) {
    inputs_.scale = trace.scale;
    // Its rows by the identity are its weights.
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (std::int64_t n = 0; n < rows_ * rows_; ++n) identity_.push_back(n % (rows_ + 1) == 0 ? 1 : 0);
    }
  }

  const reference::Inputs& inputs() const { return inputs_; }
  reference::Inputs with_identity() const {
    reference::Inputs inputs(view(q_), view(k_), view(identity_), inputs_.options);
    inputs.scale = inputs_.scale;
    return inputs;
  }

  // [heads][N, D] as a recipe makes them.
  std::vector<Matrix> rows_of(const reference::Inputs& inputs, const Recipe& recipe) const {
    RowMaker maker(inputs, recipe, {0x1p-53, 0x1p-53});
    std::vector<Matrix> all(static_cast<std::size_t>(heads_));
    for (std::int64_t h = 0; h < heads_; ++h) {
      for (std::int64_t i = 0; i < rows_; ++i) all[static_cast<std::size_t>(h)].push_back(maker.row(0, h, i).out);
    }
    return all;
  }

 private:
  TensorView view(const std::vector<double>& numbers) const {
    return {
        numbers.data(), DType::f64, {1, heads_, rows_, static_cast<std::int64_t>(numbers.size()) / heads_ / rows_}};
  }

  std::int64_t heads_, rows_;
  std::vector<double> q_, k_, v_, identity_;
  reference::Inputs inputs_;
};

Matrix side_by_side(const std::vector<Matrix>& heads) {
  Matrix joined = heads.front();
  for (std::size_t h = 1; h < heads.size(); ++h) {
    for (std::size_t i = 0; i < joined.size(); ++i)
      joined[i].insert(joined[i].end(), heads[h][i].begin(), heads[h][i].end());
  }
  return joined;
}

}  // namespace

bool differ(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) != std::isnan(b);
  return std::fabs(a - b) > 1e-9 * std::max(1.0, std::fabs(b));
}

bool differ(const Matrix& a, const Matrix& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t c = 0; c < a[i].size(); ++c) {
      if (differ(a[i][c], b[i][c])) return true;
    }
  }
  return false;
}

std::optional<MistakeMade> make_mistake(const Mistake& mistake, const reference::Problem& problem,
                                        const reference::Trace& trace) {
  const Example example(problem, trace);
  for (const Form& form : entry_of(mistake).forms) {
    if (form.around != Around::nothing) continue;
    reference::Inputs inputs = example.inputs();
    Recipe recipe;
    if (form.change_inputs && !form.change_inputs(&inputs)) continue;
    if (form.change_recipe && !form.change_recipe(inputs, &recipe)) continue;
    MistakeMade made{form.note, side_by_side(example.rows_of(inputs, recipe)), {}};
    if (!differ(made.out, trace.out)) continue;
    if (!form.change_inputs && !recipe.merges_without_transpose && !recipe.attends_across_heads)
      made.weights = example.rows_of(example.with_identity(), recipe);
    return made;
  }
  return std::nullopt;
}

}  // namespace attn::diagnose

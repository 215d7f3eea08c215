#include "diagnose/explain_theirs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn::diagnose {
namespace {

using reference::Inputs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scores of a head that take long where they are made for one row.
constexpr std::int64_t kManyScores = std::int64_t{1} << 18;

// Numbers of k beyond which tensors are not copied for a mistake in their layout: a smaller problem shows it as well.
constexpr std::int64_t kManyNumbers = std::int64_t{1} << 23;

// Multiply-adds that all steps of a fit may take, a row each.
constexpr double kFitWork = 2.5e8;

bool is_same_head(const RowPlace& a, const RowPlace& b) { return a.batch == b.batch && a.head == b.head; }

// Multiply-adds that all pairs may take, a row each: some seconds.
constexpr double kMostPairWork = 4e9;

// Applies forms one after the other; nothing where one does not apply.
struct Made {
  std::optional<Inputs> changed;
  Recipe recipe;
  bool applies = true;
};

Made make(const Inputs& inputs, std::span<const Form* const> forms) {
  Made made;
  const auto& key = inputs.key.shape;
  const bool large = key[0] * key[1] * key[2] * key[3] > kManyNumbers;
  for (const Form* form : forms) {
    if (form->around != Around::nothing || (large && form->change_inputs)) made.applies = false;
    if (form->change_inputs) {
      if (!made.changed) made.changed = inputs;
      if (!form->change_inputs(&*made.changed)) made.applies = false;
    }
    if (made.applies && form->change_recipe && !form->change_recipe(inputs, &made.recipe)) made.applies = false;
    if (!made.applies) break;
  }
  return made;
}

void compare_row(const RecipeRow& row, const double* other, double tolerance, Nearness* nearness) {
  for (std::size_t c = 0; c < row.out.size(); ++c) {
    const double difference = difference_of(row.out[c], other[c]);
    nearness->max_error = std::max(nearness->max_error, difference);
    // Also where both are NaN, of which the tolerance is NaN, too.
    if (difference != 0 && !(std::isfinite(difference) && difference <= std::max(row.tolerance[c], tolerance)))
      nearness->fits = false;
  }
}

// Whether a recipe gives theirs; stops at the first row that does not fit.
Nearness nearness_to_theirs(const Evidence& evidence, const Inputs& inputs, const Recipe& recipe) {
  RowMaker maker(inputs, recipe, evidence.rounding);
  Nearness nearness;
  for (const RowPlace& place : evidence.rows) {
    compare_row(maker.row(place.batch, place.head, place.row), evidence.comparison.theirs(place),
                evidence.tolerance, &nearness);
    if (!nearness.fits) break;
  }
  return nearness;
}

Explanation explanation_of(const Trial& trial) {
  return {{std::string(trial.entry->mistake.id)}, trial.to_theirs.max_error, trial.form->note};
}

void sort_and_drop_repeats(std::vector<Explanation>* explanations) {
  std::stable_sort(explanations->begin(), explanations->end(),
                   [](const Explanation& a, const Explanation& b) { return a.max_error < b.max_error; });
  std::vector<Explanation> kept;
  for (Explanation& explanation : *explanations) {
    const bool known =
        std::any_of(kept.begin(), kept.end(), [&](const Explanation& k) { return k.ids == explanation.ids; });
    if (!known) kept.push_back(std::move(explanation));
  }
  *explanations = std::move(kept);
}

}  // namespace

std::vector<Trial> try_single_mistakes(const Evidence& evidence, bool theirs_too) {
  // A softmax over queries takes all scores of a head: of a large one, one head must do.
  const bool large = evidence.inputs.query.shape[2] * evidence.inputs.key.shape[2] > kManyScores;
  std::vector<Trial> trials;
  for (const Entry& entry : catalogue()) {
    for (const Form& form : entry.forms) {
      const Form* forms[] = {&form};
      const Made made = make(evidence.inputs, forms);
      if (!made.applies) continue;
      RowMaker maker(made.changed ? *made.changed : evidence.inputs, made.recipe, evidence.rounding);
      Trial trial{&entry, &form, {}, {}};
      for (const RowPlace& place : evidence.rows) {
        if (made.recipe.softmax == Softmax::queries && large && !is_same_head(place, evidence.rows.front()))
          continue;
        const RecipeRow row = maker.row(place.batch, place.head, place.row);
        compare_row(row, evidence.comparison.ours(place), evidence.tolerance, &trial.to_ours);
        if (theirs_too) compare_row(row, evidence.comparison.theirs(place), evidence.tolerance, &trial.to_theirs);
        if (!trial.to_ours.fits && !theirs_too) break;
      }
      trials.push_back(trial);
    }
  }
  return trials;
}

std::vector<Explanation> explanations_of(const std::vector<Trial>& trials) {
  std::vector<Explanation> found;
  for (const Trial& trial : trials) {
    if (trial.to_theirs.fits && !trial.to_ours.fits) found.push_back(explanation_of(trial));
  }
  sort_and_drop_repeats(&found);
  return found;
}

std::optional<Explanation> closest_of(const std::vector<Trial>& trials) {
  std::optional<Explanation> closest;
  for (const Trial& trial : trials) {
    const bool nearer = !closest || trial.to_theirs.max_error < closest->max_error;
    if (nearer && !trial.to_ours.fits) closest = explanation_of(trial);
  }
  return closest;
}

std::vector<std::string> invisible_of(const std::vector<Trial>& trials) {
  std::vector<std::string> ids;
  for (const Entry& entry : catalogue()) {
    const bool visible = std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
      return trial.entry == &entry && !trial.to_ours.fits;
    });
    if (!visible) ids.emplace_back(entry.mistake.id);
  }
  return ids;
}

std::vector<Explanation> pairs_of_mistakes(const Evidence& evidence, const std::vector<Trial>& trials) {
  const bool large = evidence.inputs.query.shape[2] * evidence.inputs.key.shape[2] > kManyScores;
  std::vector<const Trial*> visible;
  for (const Trial& trial : trials) {
    if (trial.to_ours.fits || (large && trial.entry->mistake.id == "softmax-queries")) continue;
    // Forms that are the same on these inputs.
    const bool known = std::any_of(visible.begin(), visible.end(), [&](const Trial* other) {
      return other->entry == trial.entry && other->to_ours.max_error == trial.to_ours.max_error &&
             other->to_theirs.max_error == trial.to_theirs.max_error;
    });
    if (!known) visible.push_back(&trial);
  }
  const double pair_work = static_cast<double>(evidence.inputs.key.shape[2]) *
                           static_cast<double>(evidence.inputs.query.shape[3] + evidence.inputs.value_dim());
  if (pair_work * static_cast<double>(visible.size() * visible.size()) / 2 > kMostPairWork) return {};
  // What changes tensors comes first, so that each change is made once and not for every pair.
  std::stable_partition(visible.begin(), visible.end(),
                        [](const Trial* t) { return t->form->change_inputs != nullptr; });
  std::vector<Explanation> found;
  for (std::size_t a = 0; a < visible.size(); ++a) {
    const Form* first[] = {visible[a]->form};
    const Made made = make(evidence.inputs, first);
    for (std::size_t b = a + 1; b < visible.size(); ++b) {
      if (visible[a]->entry == visible[b]->entry) continue;
      const Form& second = *visible[b]->form;
      Recipe recipe = made.recipe;
      std::optional<Inputs> changed_again;
      const Inputs* inputs = made.changed ? &*made.changed : &evidence.inputs;
      if (second.change_inputs) {
        changed_again = *inputs;
        if (!second.change_inputs(&*changed_again)) continue;
        inputs = &*changed_again;
      }
      if (second.change_recipe && !second.change_recipe(evidence.inputs, &recipe)) continue;
      const Nearness nearness = nearness_to_theirs(evidence, *inputs, recipe);
      if (!nearness.fits) continue;
      found.push_back({{std::string(visible[a]->entry->mistake.id), std::string(visible[b]->entry->mistake.id)},
                       nearness.max_error,
                       joined_notes(first[0]->note, second.note)});
    }
  }
  sort_and_drop_repeats(&found);
  return found;
}

std::optional<double> fit_scale(const Evidence& evidence) {
  // The distance to theirs as a function of the scale, on a few rows.
  Evidence few = evidence;
  const double step_work = 300.0 * static_cast<double>(few.inputs.key.shape[2]) *
                           static_cast<double>(few.inputs.query.shape[3] + few.inputs.value_dim());
  const auto most = static_cast<std::size_t>(std::clamp(kFitWork / step_work, 1.0, 6.0));
  few.rows.resize(std::min(few.rows.size(), most));
  if (step_work > 10 * kFitWork) return std::nullopt;
  const auto distance = [&](double scale) {
    Recipe recipe;
    recipe.scale = scale;
    RowMaker maker(few.inputs, recipe, few.rounding);
    double sum = 0;
    for (const RowPlace& place : few.rows) {
      const RecipeRow row = maker.row(place.batch, place.head, place.row);
      const double* theirs = few.comparison.theirs(place);
      for (std::size_t c = 0; c < row.out.size(); ++c) {
        const double difference = difference_of(row.out[c], theirs[c]);
        sum += difference * difference;
      }
    }
    return sum;
  };
  const double asked = std::fabs(evidence.inputs.scale) > 0 ? std::fabs(evidence.inputs.scale) : 1;
  double best = asked, least = kInfinity;
  for (int step = -60; step <= 60; ++step) {
    for (const double sign : {1.0, -1.0}) {
      const double scale = sign * asked * std::exp2(step / 6.0);
      const double here = distance(scale);
      if (here < least) {
        least = here;
        best = scale;
      }
    }
  }
  if (!(least < kInfinity)) return std::nullopt;
  // Golden section within the neighbouring steps.
  constexpr double kGolden = 0.6180339887498949;
  double low = best * std::exp2(-1 / 6.0), high = best * std::exp2(1 / 6.0);
  double inner_low = high - kGolden * (high - low), inner_high = low + kGolden * (high - low);
  double at_low = distance(inner_low), at_high = distance(inner_high);
  for (int step = 0; step < 60; ++step) {
    if (at_low < at_high) {
      high = inner_high;
      inner_high = inner_low;
      at_high = at_low;
      inner_low = high - kGolden * (high - low);
      at_low = distance(inner_low);
    } else {
      low = inner_low;
      inner_low = inner_high;
      at_low = at_high;
      inner_high = low + kGolden * (high - low);
      at_high = distance(inner_high);
    }
  }
  Recipe recipe;
  recipe.scale = (low + high) / 2;
  if (std::fabs(*recipe.scale / evidence.inputs.scale - 1) < 1e-5) return std::nullopt;
  return nearness_to_theirs(evidence, evidence.inputs, recipe).fits ? recipe.scale : std::nullopt;
}

std::string scale_formula(double scale) {
  const std::string sign = scale < 0 ? "-" : "";
  scale = std::fabs(scale);
  constexpr double kNear = 1e-4;
  const auto near = [&](double number) { return std::fabs(scale / number - 1) < kNear; };
  for (const double plain : {1.0, 2.0, 0.5, 1.4426950408889634, 0.6931471805599453}) {
    if (near(plain))
      return sign + (plain == 1 ? "1" : plain == 2 ? "2" : plain == 0.5 ? "1/2" : plain > 1 ? "log2(e)" : "ln(2)");
  }
  const double root = std::round(1 / (scale * scale)), whole = std::round(1 / scale);
  // A whole number is the simpler formula.
  if (whole >= 2 && whole < 1e6 && near(1 / whole))
    return sign + "1/" + std::to_string(static_cast<std::int64_t>(whole));
  if (root >= 2 && root < 1e6 && near(1 / std::sqrt(root)))
    return sign + "1/sqrt(" + std::to_string(static_cast<std::int64_t>(root)) + ")";
  const double base2 = std::round(2.0813689810056077 / (scale * scale));
  if (base2 >= 2 && base2 < 1e6 && near(1.4426950408889634 / std::sqrt(base2)))
    return sign + "log2(e)/sqrt(" + std::to_string(static_cast<std::int64_t>(base2)) + ")";
  return "";
}

}  // namespace attn::diagnose

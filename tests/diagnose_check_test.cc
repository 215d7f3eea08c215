// The judge: right answers are called right, every mistake is named or declared invisible, and pairs are found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "attn/attention.h"
#include "attn/diagnose.h"
#include "attn/dtype.h"
#include "diagnose/catalogue.h"
#include "diagnose_problem.h"

namespace attn::diagnose {
namespace {

// Trials, in percent of what is usual.
int effort(int usual) {
  const char* wish = std::getenv("ATTN_TEST_EFFORT");
  return std::max(1, usual * (wish ? std::max(1, std::atoi(wish)) : 100) / 100);
}

Diagnosis diagnose(const TestProblem& problem, const std::vector<std::uint8_t>& answer) {
  Diagnosis diagnosis;
  EXPECT_EQ(check(problem.q(), problem.k(), problem.v(), problem.answer(answer), problem.options, {}, &diagnosis)
                .message(),
            "");
  return diagnosis;
}

bool names(const Diagnosis& diagnosis, const std::vector<std::string>& ids) {
  return std::any_of(diagnosis.explanations.begin(), diagnosis.explanations.end(),
                     [&](const Explanation& explanation) { return explanation.ids == ids; });
}

bool is_invisible(const Diagnosis& diagnosis, std::string_view id) {
  return std::find(diagnosis.invisible.begin(), diagnosis.invisible.end(), id) != diagnosis.invisible.end();
}

std::string told(const Diagnosis& diagnosis) {
  std::string text = "verdict " + std::to_string(static_cast<int>(diagnosis.verdict)) + ":";
  for (const Explanation& explanation : diagnosis.explanations) {
    text += " [";
    for (const std::string& id : explanation.ids) text += id + " ";
    text += explanation.note + "]";
  }
  return text;
}

TEST(Check, CallsRightAnswersRightInAnyOrderOfSummation) {
  std::mt19937_64 random(1);
  const int trials = effort(300);
  for (int trial = 0; trial < trials; ++trial) {
    const DType dtype = trial % 3 == 0 ? DType::bf16 : trial % 3 == 1 ? DType::f16 : DType::f32;
    const int family = trial % TestProblem::kFamilies;
    const TestProblem problem(family, static_cast<std::uint64_t>(trial), dtype);
    const Diagnosis plain = diagnose(problem, problem.right_in_any_order(random));
    ASSERT_EQ(plain.verdict, Verdict::right)
        << TestProblem::family_name(family) << " " << trial << " " << told(plain);
    ASSERT_EQ(plain.precision, "f32");
    if (dtype == DType::f32) continue;
    const Diagnosis coarse = diagnose(problem, problem.right_in_16_bits(random));
    ASSERT_EQ(coarse.verdict, Verdict::right)
        << TestProblem::family_name(family) << " " << trial << " " << told(coarse);
  }
}

// Applies a form, and makes the answer.
bool make_mistake(const TestProblem& problem, const Form& form, std::vector<std::uint8_t>* answer) {
  reference::Inputs inputs(problem.q(), problem.k(), problem.v(), problem.options);
  Recipe recipe;
  if (form.change_inputs && !form.change_inputs(&inputs)) return false;
  if (form.change_recipe && !form.change_recipe(inputs, &recipe)) return false;
  *answer = problem.made_by(inputs, recipe);
  return true;
}

TEST(Check, NamesEveryMistakeOrSaysThatItIsInvisible) {
  std::map<std::string_view, int> seen;
  const int rounds = effort(2);
  for (int round = 0; round < rounds; ++round) {
    for (int family = 0; family < TestProblem::kFamilies; ++family) {
      const TestProblem problem(family, 500 + static_cast<std::uint64_t>(round));
      for (const Entry& entry : catalogue()) {
        for (const Form& form : entry.forms) {
          std::vector<std::uint8_t> answer;
          if (!make_mistake(problem, form, &answer)) continue;
          const Diagnosis diagnosis = diagnose(problem, answer);
          const std::string id(entry.mistake.id);
          if (diagnosis.verdict == Verdict::right) continue;  // nothing to be seen of this form
          ASSERT_TRUE(names(diagnosis, {id}))
              << id << " (" << form.note << ") in " << TestProblem::family_name(family) << ": " << told(diagnosis);
          ++seen[entry.mistake.id];
        }
      }
    }
  }
  // Each that q, k and v can show was seen somewhere.
  for (const Entry& entry : catalogue()) {
    const bool made_here = std::any_of(entry.forms.begin(), entry.forms.end(),
                                       [](const Form& form) { return form.around == Around::nothing; });
    const bool shown_by_these = made_here && entry.mistake.id != "softmax-no-max" &&
                                entry.mistake.id != "sink-not-in-max" && entry.mistake.id != "gqa-repeat-sequence";
    if (shown_by_these) {
      EXPECT_GT(seen[entry.mistake.id], 0) << entry.mistake.id;
    }
  }
}

TEST(Check, SaysWhatTheInputsCanNotShow) {
  const TestProblem one_head(0, 3);
  std::mt19937_64 random(2);
  const Diagnosis diagnosis = diagnose(one_head, one_head.right_in_any_order(random));
  for (const char* id : {"scale-model", "heads-time-mixed", "merge-without-transpose", "gqa-tiled",
                         "causal-missing", "rope-layout", "lse-base", "qkv-order", "dropout-at-eval"}) {
    if (std::string(id) == "scale-model") continue;  // with one head 1/sqrt(H·Dk) is right: invisible, too
    EXPECT_TRUE(is_invisible(diagnosis, id)) << id;
  }
  EXPECT_TRUE(is_invisible(diagnosis, "scale-model"));
  EXPECT_FALSE(is_invisible(diagnosis, "scale-missing"));
  EXPECT_FALSE(is_invisible(diagnosis, "causal-forced"));
}

TEST(Check, FindsPairs) {
  int visible = 0, named = 0;
  std::mt19937_64 random(3);
  const auto& entries = catalogue();
  const int trials = effort(600);
  for (int trial = 0; trial < trials; ++trial) {
    const int family = trial % TestProblem::kFamilies;
    const TestProblem problem(family, 900 + static_cast<std::uint64_t>(trial));
    const Entry &a = entries[random() % entries.size()], &b = entries[random() % entries.size()];
    if (a.forms.empty() || b.forms.empty() || &a == &b) continue;
    const Form &first = a.forms[random() % a.forms.size()], &second = b.forms[random() % b.forms.size()];
    reference::Inputs inputs(problem.q(), problem.k(), problem.v(), problem.options);
    Recipe recipe;
    bool applies = true;
    for (const Form* form : {&first, &second}) {
      if (form->change_inputs) applies = applies && form->change_inputs(&inputs);
      if (form->change_recipe) applies = applies && form->change_recipe(inputs, &recipe);
    }
    std::vector<std::uint8_t> alone_a, alone_b;
    if (!applies || !make_mistake(problem, first, &alone_a) || !make_mistake(problem, second, &alone_b)) continue;
    const std::vector<std::uint8_t> answer = problem.made_by(inputs, recipe);
    const Diagnosis diagnosis = diagnose(problem, answer);
    const bool both_show = diagnose(problem, alone_a).verdict != Verdict::right &&
                           diagnose(problem, alone_b).verdict != Verdict::right;
    // One hides the other where the numbers are those of a single mistake.
    if (!both_show || diagnosis.verdict == Verdict::right || answer == alone_a || answer == alone_b) continue;
    ++visible;
    // Ties count: what is named gives these very numbers. A fitted scale or coarse arithmetic is no name for them.
    named += !diagnosis.explanations.empty() && diagnosis.explanations[0].ids[0] != "softmax-16bit";
  }
  ASSERT_GT(visible, trials / 20);
  EXPECT_GE(named, 0.95 * visible) << named << " of " << visible;
}

TEST(Check, FitsAScaleAndNamesItsFormula) {
  for (int family = 0; family < TestProblem::kFamilies; ++family) {
    const TestProblem problem(family, 77);
    const reference::Inputs inputs(problem.q(), problem.k(), problem.v(), problem.options);
    Recipe recipe;
    recipe.scale = 1 / std::sqrt(512.0);
    const Diagnosis diagnosis = diagnose(problem, problem.made_by(inputs, recipe));
    EXPECT_EQ(diagnosis.verdict, Verdict::wrong) << TestProblem::family_name(family);
    ASSERT_TRUE(diagnosis.fitted_scale) << TestProblem::family_name(family) << told(diagnosis);
    EXPECT_NEAR(*diagnosis.fitted_scale, *recipe.scale, 1e-4 * *recipe.scale);
    EXPECT_EQ(diagnosis.fitted_formula, "1/sqrt(512)");
  }
}

TEST(Check, SaysWhenNothingExplainsIt) {
  std::mt19937_64 random(5);
  const TestProblem problem(1, 5), other(1, 6);
  std::vector<std::uint8_t> answer = problem.right_in_any_order(random);
  for (std::size_t n = 0; n < answer.size(); n += 4) {
    float number = 0;
    std::memcpy(&number, answer.data() + n, 4);
    number = std::sin(number * 7 + static_cast<float>(n));
    std::memcpy(answer.data() + n, &number, 4);
  }
  const Diagnosis diagnosis = diagnose(problem, answer);
  EXPECT_EQ(diagnosis.verdict, Verdict::unexplained);
  EXPECT_TRUE(diagnosis.explanations.empty());
  ASSERT_TRUE(diagnosis.closest);
  EXPECT_GT(diagnosis.closest->max_error, 0.1);
}

// One number of one row: it is found, and where.
TEST(Check, FindsASingleWrongNumber) {
  std::mt19937_64 random(6);
  const TestProblem problem(7, 8);
  std::vector<std::uint8_t> answer = problem.right_in_any_order(random);
  const std::size_t element = answer.size() / 4 / 2;
  float number = 0;
  std::memcpy(&number, answer.data() + element * 4, 4);
  for (const float wrong : {number + 0.01F, NAN, INFINITY}) {
    std::memcpy(answer.data() + element * 4, &wrong, 4);
    const Diagnosis diagnosis = diagnose(problem, answer);
    EXPECT_EQ(diagnosis.verdict, Verdict::unexplained);
    EXPECT_EQ(diagnosis.rows_differing, 1);
    EXPECT_EQ(diagnosis.where.row, static_cast<std::int64_t>(element) / problem.value_dim);
    EXPECT_EQ(diagnosis.where.column, static_cast<std::int64_t>(element) % problem.value_dim);
  }
}

// Which rows differ is told in sentences.
TEST(Check, DescribesWhichRowsDiffer) {
  std::mt19937_64 random(9);
  const TestProblem causal(1, 12), plain(7, 3);  // heads; long
  const auto told_of = [](const Diagnosis& diagnosis) {
    std::string all;
    for (const std::string& sentence : diagnosis.patterns) all += sentence + " ";
    return all;
  };
  const auto spoil = [](const TestProblem& problem, std::vector<std::uint8_t> answer, auto&& chosen) {
    const std::int64_t columns = problem.value_dim;
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(answer.size()) / 4 / columns; ++row) {
      if (!chosen(row / problem.queries % problem.heads, row % problem.queries)) continue;
      const float wrong = static_cast<float>(row) + 100;
      std::memcpy(answer.data() + row * columns * 4, &wrong, 4);
    }
    return answer;
  };
  const auto right = causal.right_in_any_order(random);
  EXPECT_NE(told_of(diagnose(causal, spoil(causal, right, [](auto head, auto) { return head == 1; })))
                .find("Only in heads 1."),
            std::string::npos);
  EXPECT_NE(told_of(diagnose(causal, spoil(causal, right, [](auto, auto row) { return row == 2; })))
                .find("Only rows 2 differ."),
            std::string::npos);
  const std::int64_t last = causal.queries - 1;
  EXPECT_NE(told_of(diagnose(causal, spoil(causal, right, [&](auto, auto row) { return row < last; })))
                .find("They are the rows that hide some key."),
            std::string::npos);
  const std::int64_t tiles = plain.queries / 64 * 64;
  ASSERT_GT(plain.queries, tiles);
  EXPECT_NE(told_of(diagnose(plain, spoil(plain, plain.right_in_any_order(random),
                                          [&](auto, auto row) { return row >= tiles; })))
                .find(" rows leave over."),
            std::string::npos);
}

// A row of small numbers that is wrong, among many of large numbers whose rounding is as large.
TEST(Check, FindsSmallRowsThatAreWrong) {
  constexpr std::int64_t kRows = 400, kDim = 4;
  std::mt19937_64 random(10);
  std::normal_distribution<float> normal;
  std::vector<float> q, k, v;
  for (std::int64_t n = 0; n < kRows * kDim; ++n) {
    q.push_back(normal(random));
    k.push_back(normal(random));
    v.push_back(n < kDim * 200 ? normal(random) * 1e-3F : normal(random) * 1e4F);
  }
  // Causal: the first 200 rows see small values alone.
  AttentionOptions options;
  options.causal = true;
  const auto view = [](const std::vector<float>& numbers) {
    return TensorView(numbers.data(), DType::f32, {kRows, kDim});
  };
  std::vector<float> out(q.size());
  ASSERT_TRUE(forward(view(q), view(k), view(v), {out.data(), DType::f32, {kRows, kDim}}, options).ok());
  Diagnosis diagnosis;
  ASSERT_TRUE(check(view(q), view(k), view(v), view(out), options, {}, &diagnosis).ok());
  EXPECT_EQ(diagnosis.verdict, Verdict::right);
  out[static_cast<std::size_t>(137 * kDim)] += 1e-4F;  // less than the rounding of large rows
  ASSERT_TRUE(check(view(q), view(k), view(v), view(out), options, {}, &diagnosis).ok());
  EXPECT_NE(diagnosis.verdict, Verdict::right);
  EXPECT_EQ(diagnosis.where.row, 137);
}

TEST(Check, IsSafeWithNaNEverywhere) {
  const TestProblem problem(1, 9);
  std::vector<std::uint8_t> answer(
      static_cast<std::size_t>(problem.heads * problem.queries * problem.value_dim) * 4, 0xFF);
  const Diagnosis diagnosis = diagnose(problem, answer);
  EXPECT_EQ(diagnosis.verdict, Verdict::unexplained);
  EXPECT_EQ(diagnosis.rows_differing, problem.heads * problem.queries);
  EXPECT_TRUE(std::isnan(diagnosis.max_error));
}

TEST(Check, TellsPrecisionFromMistake) {
  std::mt19937_64 random(7);
  // In 16-bit tensors a precision; in f32 tensors a mistake.
  const TestProblem half(0, 4, DType::bf16);
  const Diagnosis coarse = diagnose(half, half.right_in_16_bits(random));
  EXPECT_EQ(coarse.verdict, Verdict::right);
  EXPECT_EQ(coarse.precision, "bf16");
  EXPECT_LE(coarse.max_error, coarse.bound);
  const TestProblem full(0, 4);
  const Diagnosis mistake = diagnose(full, full.right_in_16_bits(random));
  EXPECT_EQ(mistake.verdict, Verdict::wrong);
  ASSERT_EQ(mistake.explanations.size(), 1U);
  EXPECT_EQ(mistake.explanations[0].ids, std::vector<std::string>{"softmax-16bit"});
}

// What is plainly wrong is never right, however wide a bound may be: zeros, multiples, another head's numbers, another scale.
TEST(Check, CallsNoWrongAnswerRight) {
  std::mt19937_64 random(11);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (int family = 0; family < TestProblem::kFamilies; ++family) {
      const TestProblem problem(family, 40, dtype);
      const reference::Inputs inputs(problem.q(), problem.k(), problem.v(), problem.options);
      const auto right = problem.right_in_any_order(random);
      const auto changed = [&](auto&& change) {
        std::vector<std::uint8_t> bytes;
        const reference::Array array = reference::read(problem.answer(right));
        for (const double number : array.values) {
          const auto narrow = static_cast<float>(change(number));
          const std::uint16_t half = dtype == DType::f16 ? float_to_f16(narrow) : float_to_bf16(narrow);
          const auto* from = dtype == DType::f32 ? reinterpret_cast<const std::uint8_t*>(&narrow)
                                                 : reinterpret_cast<const std::uint8_t*>(&half);
          bytes.insert(bytes.end(), from, from + size_of(dtype));
        }
        return bytes;
      };
      const std::string where = std::string(TestProblem::family_name(family)) + " " + name_of(dtype);
      EXPECT_NE(diagnose(problem, changed([](double) { return 0.0; })).verdict, Verdict::right) << where;
      EXPECT_NE(diagnose(problem, changed([](double x) { return 2 * x; })).verdict, Verdict::right) << where;
      EXPECT_NE(diagnose(problem, changed([](double x) { return -x; })).verdict, Verdict::right) << where;
      EXPECT_NE(diagnose(problem, changed([](double x) { return x + 0.5; })).verdict, Verdict::right) << where;
      Recipe recipe;
      recipe.scale = 2 * inputs.scale;
      if (problem.options.window_left == 0) continue;  // one key a row: no scale is seen
      EXPECT_NE(diagnose(problem, problem.made_by(inputs, recipe)).verdict, Verdict::right) << where;
    }
  }
}

// Large scores make 16-bit bounds as wide as the numbers.
TEST(Check, CallsZerosWrongWhereScoresAreLarge) {
  constexpr std::int64_t kRows = 8, kDim = 64;
  std::mt19937_64 random(12);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> q, k, v, zeros(kRows * kDim);
  for (std::int64_t n = 0; n < kRows * kDim; ++n) {
    q.push_back(float_to_bf16(12 * normal(random)));
    k.push_back(float_to_bf16(12 * normal(random)));
    v.push_back(float_to_bf16(normal(random)));
  }
  const auto view = [](const auto& numbers) { return TensorView(numbers.data(), DType::bf16, {kRows, kDim}); };
  Diagnosis diagnosis;
  ASSERT_TRUE(check(view(q), view(k), view(v), view(zeros), {}, {}, &diagnosis).ok());
  EXPECT_NE(diagnosis.verdict, Verdict::right);
}

// Small errors of one sign in f32 are no 16-bit arithmetic.
TEST(Check, DoesNotTakeEverySmallErrorFor16Bits) {
  std::mt19937_64 random(13);
  const TestProblem problem(7, 21);
  const reference::Inputs inputs(problem.q(), problem.k(), problem.v(), problem.options);
  Recipe recipe;
  recipe.scale = 1.02 * inputs.scale;
  const Diagnosis scaled = diagnose(problem, problem.made_by(inputs, recipe));
  ASSERT_TRUE(scaled.fitted_scale);
  EXPECT_NEAR(*scaled.fitted_scale, *recipe.scale, 1e-5);
  std::vector<std::uint8_t> larger = problem.right_in_any_order(random);
  for (std::size_t n = 0; n < larger.size(); n += 4) {
    float number = 0;
    std::memcpy(&number, larger.data() + n, 4);
    number *= 1.03F;
    std::memcpy(larger.data() + n, &number, 4);
  }
  EXPECT_EQ(diagnose(problem, larger).verdict, Verdict::unexplained);
}

TEST(Check, ToleranceIsNotOverruled) {
  std::mt19937_64 random(14);
  const TestProblem problem(0, 4, DType::bf16);
  Diagnosis diagnosis;
  const auto answer = problem.right_in_16_bits(random);
  const auto verdict = [&](double tolerance) {
    EXPECT_TRUE(check(problem.q(), problem.k(), problem.v(), problem.answer(answer), problem.options,
                      {.tolerance = tolerance}, &diagnosis)
                    .ok());
    return diagnosis.verdict;
  };
  EXPECT_NE(verdict(1e-9), Verdict::right);
  EXPECT_EQ(verdict(1), Verdict::right);
  EXPECT_NE(check(problem.q(), problem.k(), problem.v(), problem.answer(answer), problem.options,
                  {.tolerance = NAN}, &diagnosis)
                .message(),
            "");
}

// One head of eight, with values that are small beside the others'.
TEST(Check, FindsAWrongHeadOfSmallNumbersInBf16) {
  constexpr std::int64_t kHeads = 8, kRows = 12, kDim = 16;
  std::mt19937_64 random(15);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> q, k, v, out(kHeads * kRows * kDim);
  for (std::int64_t n = 0; n < kHeads * kRows * kDim; ++n) {
    q.push_back(float_to_bf16(normal(random)));
    k.push_back(float_to_bf16(normal(random)));
    v.push_back(float_to_bf16(normal(random) * (n / (kRows * kDim) == 5 ? 0.002F : 1.0F)));
  }
  const auto view = [](const auto& numbers) {
    return TensorView(numbers.data(), DType::bf16, {kHeads, kRows, kDim});
  };
  ASSERT_TRUE(forward(view(q), view(k), view(v), {out.data(), DType::bf16, {kHeads, kRows, kDim}}).ok());
  Diagnosis diagnosis;
  ASSERT_TRUE(check(view(q), view(k), view(v), view(out), {}, {}, &diagnosis).ok());
  EXPECT_EQ(diagnosis.verdict, Verdict::right);
  std::fill(out.begin() + 5 * kRows * kDim, out.begin() + 6 * kRows * kDim, std::uint16_t{0});
  ASSERT_TRUE(check(view(q), view(k), view(v), view(out), {}, {}, &diagnosis).ok());
  EXPECT_NE(diagnosis.verdict, Verdict::right);
}

// bf16 tensors that were saved as f32 for want of a better type.
TEST(Check, KnowsBf16ThatWasSavedAsF32) {
  std::mt19937_64 random(16);
  const TestProblem problem(1, 4, DType::bf16);
  const auto widened = [](const TensorView& view) {
    const reference::Array array = reference::read(view);
    return std::vector<float>(array.values.begin(), array.values.end());
  };
  const auto answer = problem.right_in_16_bits(random);
  const std::vector<float> q = widened(problem.q()), k = widened(problem.k()), v = widened(problem.v()),
                           out = widened(problem.answer(answer));
  const auto as_f32 = [](TensorView view, const std::vector<float>& numbers) {
    view.data = numbers.data();
    view.dtype = DType::f32;
    return view;
  };
  Diagnosis diagnosis;
  ASSERT_TRUE(check(as_f32(problem.q(), q), as_f32(problem.k(), k), as_f32(problem.v(), v),
                    as_f32(problem.answer(answer), out), problem.options, {}, &diagnosis)
                  .ok());
  EXPECT_EQ(diagnosis.verdict, Verdict::right) << told(diagnosis);
  EXPECT_EQ(diagnosis.precision, "bf16");
}

// Masks of every shape that broadcasts, with more keys than queries and the other way round.
TEST(Check, ReadsMasksWhereTheyAre) {
  for (const auto& [n, m] : {std::pair<std::int64_t, std::int64_t>{2, 40}, {40, 2}, {7, 7}}) {
    std::vector<float> numbers(static_cast<std::size_t>(std::max(n, m) * 4), 0.5F);
    const TensorView q(numbers.data(), DType::f32, {n, 4}), k(numbers.data(), DType::f32, {m, 4});
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{n, m}, {n, 1}, {1, m}, {m}}) {
      std::vector<std::uint8_t> truths(static_cast<std::size_t>(n * m), 1);
      AttentionOptions options;
      options.mask = TensorView(truths.data(), DType::boolean, shape);
      Diagnosis diagnosis;
      ASSERT_TRUE(check(q, k, k, q, options, {}, &diagnosis).ok());
      EXPECT_EQ(diagnosis.verdict, Verdict::right);
    }
  }
}

TEST(Check, RefusesAnswersOfAnotherShape) {
  const TestProblem problem(1, 2);
  Diagnosis diagnosis;
  const std::vector<float> answer(10);
  EXPECT_NE(check(problem.q(), problem.k(), problem.v(), {answer.data(), DType::f32, {1, 1, 5, 2}}, problem.options,
                  {}, &diagnosis)
                .message()
                .find("theirs: shape [1, 1, 5, 2], but out is ["),
            std::string::npos);
  EXPECT_NE(check(problem.q(), problem.k(), problem.v(), {answer.data(), DType::f32, {5, 2}}, problem.options, {},
                  &diagnosis)
                .message()
                .find("theirs: 2 dimensions"),
            std::string::npos);
  EXPECT_NE(
      check(problem.q(), problem.v(), problem.v(), problem.answer({}), problem.options, {}, &diagnosis).message(),
      "");
}

TEST(Catalogue, HasUniqueIdsAndWholeSentences) {
  std::vector<std::string_view> ids;
  for (const Mistake& mistake : mistakes()) {
    EXPECT_EQ(find_mistake(mistake.id), &mistake);
    EXPECT_TRUE(mistake.what.ends_with('.')) << mistake.id;
    EXPECT_TRUE(mistake.fix.ends_with('.') || mistake.fix.ends_with(')')) << mistake.id;
    ids.push_back(mistake.id);
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(find_mistake("none"), nullptr);
}

}  // namespace
}  // namespace attn::diagnose

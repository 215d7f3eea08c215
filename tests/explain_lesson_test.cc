// The lesson as a person reads it: the printed digits, written-out calculations, and each option's step.
#include "explain/lesson.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "explain/example.h"
#include "explain/numbers.h"
#include "explain/render.h"

namespace attn::explain {
namespace {

using reference::Problem;

std::string tell(const Problem& problem) {
  reference::Trace trace;
  const Status status = reference::trace(problem, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return as_text(lesson(problem, trace));
}

void expect_told(const std::string& text, const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces)
    EXPECT_NE(text.find(piece), std::string::npos) << piece << "\nin\n" << text;
}

// The text with its line breaks undone.
std::string words_of(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

TEST(Lesson, EndsWithWeightsAndOutputs) {
  const std::string text = tell(worked_example());
  const std::string end =
      "  order    1 0 0\n"
      "  4471     0.5 0.5 0\n"
      "  shipped  0.673 0.164 0.164\n"
      "\nOutputs:\n\n"
      "  order    (3, 0)\n"
      "  4471     (1.5, 2)\n"
      "  shipped  (2.18, 0.82)\n";
  EXPECT_TRUE(text.ends_with(end)) << text;
}

TEST(Lesson, WritesEveryCalculationOut) {
  expect_told(tell(worked_example()),
              {"Step 1", "Step 7", "order    (1·1 + 0·0 + 1·1 + 0·0, 1·0 + 0·1 + 1·1 + 0·0) = (2, 1)",
               "order → order      (2, 1)·(2, 1) = 2·2 + 1·1 = 5",
               "shipped → order    (1, 1)·(2, 1) = 1·2 + 1·1 = 3", "√2 = 1.414",
               "shipped  exp(2.121 − 2.121) + exp(0.707 − 2.121) + exp(0.707 − 2.121) = "
               "1 + 0.243 + 0.243 = 1.486",
               "1 / 1.486 = 0.673, 0.243 / 1.486 = 0.164",
               "shipped  0.673·(3, 0) + 0.164·(0, 4) + 0.164·(1, 1) = (2.18, 0.82)", "Notice:"});
}

TEST(Lesson, AlignsTablesAtThePoint) {
  expect_told(tell(worked_example()), {"             order  4471    shipped\n"
                                       "    order    3.536  −∞      −∞\n"
                                       "    4471     0.707   0.707  −∞\n"
                                       "    shipped  2.121   0.707   0.707\n"});
}

TEST(Lesson, TellsWhyScoresAreScaledAndWhatWeightsDoNotSay) {
  expect_told(
      tell(worked_example()),
      {"softmax(11, 0, −11) = (0.99998, 1.67·10⁻⁵, 2.79·10⁻¹⁰)", "softmax(1, 0, −1) = (0.66524, 0.24473, 0.09003)",
       "√128 = 11.3", "with d = 64 by 8", "Weights show where a value came from", "1,000 tokens 10⁶"});
}

TEST(Lesson, TilesEndAtTheSameOutputs) {
  for (const std::int64_t tile : {1, 2, 3, 100}) {
    Problem problem = worked_example();
    problem.tile = tile;
    const std::string text = tell(problem);
    expect_told(text, {"tile by tile", "(3.243, 1.216) / 1.486 = (2.18, 0.82)", "(3, 4) / 2 = (1.5, 2)"});
  }
}

TEST(Lesson, TilesBeginAtNothing) {
  Problem problem = worked_example();
  problem.tile = 1;
  expect_told(words_of(tell(problem)), {"The max starts at −∞, so the first rescale is exp(−∞ − max) = 0"});
  EXPECT_EQ(words_of(tell(problem)).find("larger than"), std::string::npos);
  problem.tile = 100;
  expect_told(words_of(tell(problem)), {"A tile of 100 keys is larger than all keys together: there is one tile"});
}

TEST(Lesson, NamesTheOutputProjection) {
  expect_told(words_of(tell(worked_example())), {"its output projection"});
  Problem problem = worked_example();
  problem.heads = 2;
  expect_told(words_of(tell(problem)), {"What heads found meets only behind attention"});
}

// Scores of the last key overflow; causal, so that only the last query sees it.
Problem overflowing(const std::vector<double>& key) {
  Problem problem = worked_example();
  problem.replaced.push_back({'k', 2, key});
  return problem;
}

TEST(Lesson, SaysWhereNumbersOverflow) {
  const std::string text = words_of(tell(overflowing({1e308, 1e308})));
  expect_told(
      text, {"In the row of shipped, scores went beyond the range of f64",
             "The weights of shipped are not numbers (nan)", "Each other row that sees a key adds up to 1",
             "The outputs of shipped hold what is no finite number", "Any other output lies", "that is no result"});
  EXPECT_EQ(text.find("makes a row add up to 1"), std::string::npos);

  Problem open = overflowing({1e308, 1e308});
  open.options.causal = false;
  open.replaced.push_back({'q', 1, {2, 2}});
  const std::string all = words_of(tell(open));
  expect_told(all, {"In the rows of order, 4471 and shipped,", "The weights of order, 4471 and shipped"});
  EXPECT_EQ(all.find("that sees a key adds up to 1"), std::string::npos);
  EXPECT_EQ(all.find("lies among the values"), std::string::npos);
}

TEST(Lesson, SaysWhereAnOverflowedScoreWeighsNothing) {
  const std::string text = words_of(tell(overflowing({-1e308, -1e308})));
  expect_told(text, {"In the row of shipped, scores went", "Each row that sees a key adds up to 1"});
  EXPECT_EQ(text.find("not numbers"), std::string::npos);
}

TEST(Lesson, DoesNotSpeakOfOverflowWhereNobodyLooks) {
  Problem problem = overflowing({1e308, 1e308});
  const std::int64_t lengths[] = {2};
  problem.options.key_lengths = lengths;
  problem.options.alignment = Alignment::top_left;
  EXPECT_EQ(tell(problem).find("overflowed"), std::string::npos);
  EXPECT_EQ(tell(worked_example()).find("overflowed"), std::string::npos);
}

TEST(Lesson, OptionsGetTheirSteps) {
  Problem problem = worked_example();
  problem.options.softcap = 2;
  const double slopes[] = {0.25}, sinks[] = {1};
  problem.options.alibi = TensorView(slopes, DType::f64, {1});
  problem.options.sinks = TensorView(sinks, DType::f64, {1});
  problem.options.window_left = 1;
  problem.options.sink_tokens = 1;
  const std::int64_t lengths[] = {2};
  problem.options.key_lengths = lengths;
  expect_told(tell(problem), {"softcap", "2·tanh(s / 2)", "slope of 0.25", "keys from p − 1 to the last",
                              "always the first key", "only the first 2 keys", "A sink joins"});
  EXPECT_EQ(tell(worked_example()).find("softcap"), std::string::npos);

  Problem open = worked_example();
  open.options.causal = false;
  open.options.scale = 1;
  expect_told(tell(open), {"Nothing is hidden", "no scaling"});
}

TEST(Lesson, SaysWhereNothingIsSeen) {
  Problem problem = worked_example();
  problem.options.alignment = Alignment::offset;
  problem.options.position_offset = -1;
  problem.tile = 1;
  expect_told(tell(problem), {"order    sees no key: every weight is 0", "order    nothing to add up = (0, 0)",
                              "i + (−1)", "order  sees no key: (0, 0)"});
}

TEST(Lesson, TellsHeadsOneByOne) {
  Problem problem = worked_example();
  problem.heads = 2;
  expect_told(tell(problem), {"Head 1 of 2", "Head 2 of 2", "Weights of head 2", "(2)·(2) = 2·2 = 4"});
}

TEST(Lesson, OfManyTokensWritesOneQueryOut) {
  Problem problem;
  for (int row = 0; row < 20; ++row) {
    problem.tokens.push_back(std::string("t").append(std::to_string(row)));
    problem.q.emplace_back(12, 0.5);
    problem.k.emplace_back(12, row * 0.25);
    problem.v.push_back({static_cast<double>(row)});
  }
  const std::string text = tell(problem);
  expect_told(text, {"t19 → t3 ", "the sum of 12 products", "the sum of 20 exponentials"});
  EXPECT_EQ(text.find("t18 → t3 "), std::string::npos);
}

TEST(Numbers, AreShort) {
  EXPECT_EQ(number_text(0.672841798375977), "0.673");
  EXPECT_EQ(number_text(5), "5");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(-1.50), "−1.5");
  EXPECT_EQ(number_text(2.1821044959399427, kOutputDigits), "2.18");
  EXPECT_EQ(number_text(1.6701421843436452e-05), "1.67·10⁻⁵");
  EXPECT_EQ(number_text(-1e300), "−1·10³⁰⁰");
  EXPECT_EQ(number_text(123456.789), "123456.789");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "−∞");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(factor_text(-2), "(−2)");
  EXPECT_EQ(dot_product_text({1, -2}, {-3, 4}), "1·(−3) + (−2)·4");
  EXPECT_EQ(vector_text(std::vector<double>(9, 1)), "(1, 1, 1, 1, 1, 1, 1, 1, …)");
}

}  // namespace
}  // namespace attn::explain

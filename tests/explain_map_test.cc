// Maps: rankings, habits, names of tokens, and pictures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "explain/attention_map.h"
#include "explain/map_picture.h"
#include "explain/picture.h"

namespace attn::explain {
namespace {

// Two layers of two heads over six tokens: the first token; the previous one; half on token 2; uniform.
AttentionMap sample() {
  AttentionMap map;
  map.model = "a <model>";
  map.tokens = {"<s>", "\u2581the", "\u2581ket", "tle", "\u2581was", "\u2581it"};
  map.special = {true, false, false, false, false, false};
  map.heads = 2;
  map.layers = {3, 4};
  map.fidelity = 1.5e-6;
  map.rows_judged = 6;
  map.weights.resize(2 * 2 * 36);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto at = [&](std::size_t head, std::size_t j) -> float& { return map.weights[head * 36 + i * 6 + j]; };
    at(0, 0) = 1;
    at(1, i > 0 ? i - 1 : 0) = 1;
    at(2, std::min<std::size_t>(i, 2)) = 0.5F;
    at(2, 0) += 0.5F;
    for (std::size_t j = 0; j <= i; ++j) at(3, j) = 1 / static_cast<float>(i + 1);
  }
  return map;
}

TEST(Map, RanksHeadsByWhatGoesBeyondHabits) {
  const std::vector<HeadRow> ranking = rank_heads(sample(), 5);
  ASSERT_EQ(ranking.size(), 4U);
  EXPECT_EQ(ranking[0].layer, 4);
  EXPECT_EQ(ranking[0].head, 0);
  EXPECT_NEAR(ranking[0].beyond, 0.5 - 1.0 / 6, 1e-6);
  EXPECT_NEAR(ranking[0].first, 0.5, 1e-6);
  EXPECT_EQ(ranking[0].order.size(), 6U);
  EXPECT_EQ(ranking[0].order[0], 0);
  EXPECT_EQ(ranking[0].order[1], 2);
  // First token, previous token, uniform: habits, all three.
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(ranking[i].beyond, 0, 1e-6);
}

TEST(Map, AQuerySeesOnlyWhatItMay) {
  EXPECT_EQ(rank_heads(sample(), 2)[0].order.size(), 3U);
  AttentionMap both_ways = sample();
  both_ways.causal = false;
  EXPECT_EQ(rank_heads(both_ways, 2)[0].order.size(), 6U);
}

TEST(Map, SpecialTokensAreHabits) {
  AttentionMap map = sample();
  EXPECT_GT(rank_heads(map, 5)[0].beyond, 0.3);
  map.special[2] = true;
  EXPECT_NEAR(rank_heads(map, 5)[0].beyond, 0, 1e-6);
}

TEST(Map, HabitsAreAverages) {
  const std::vector<HeadHabits> habits = habits_of(sample());
  EXPECT_NEAR(habits[0].first, 1, 1e-6);
  EXPECT_NEAR(habits[1].previous, 1, 1e-6);
  EXPECT_NEAR(habits[1].first, 0, 1e-6);
  EXPECT_NEAR(habits[3].itself, (1.0 / 3 + 1.0 / 4 + 1.0 / 5 + 1.0 / 6) / 4, 1e-6);
}

TEST(Map, TokensAreFoundByWordOrPosition) {
  std::int64_t position = -1, places = 0;
  const auto find = [&](const std::string& text) {
    return find_token(sample(), text, &position, &places).message();
  };
  EXPECT_EQ(find("it"), "");
  EXPECT_EQ(position, 5);
  EXPECT_EQ(find("kettle"), "");
  EXPECT_EQ(position, 3);
  EXPECT_EQ(find("tle"), "");
  EXPECT_EQ(position, 3);
  EXPECT_EQ(find("2"), "");
  EXPECT_EQ(position, 2);
  EXPECT_EQ(places, 1);
  EXPECT_NE(find("6").find("nor a position from 0 to 5"), std::string::npos);
  EXPECT_NE(find("toaster").find("its tokens are <s> the ket tle was it"), std::string::npos);
  EXPECT_NE(find(""), "");
  AttentionMap twice = sample();
  twice.tokens[1] = "\u2581it";
  EXPECT_EQ(find_token(twice, "it", &position, &places).message(), "");
  EXPECT_EQ(position, 5);
  EXPECT_EQ(places, 2);
  twice.tokens = {"[CLS]", "toast", "##er", "was", ".", "[SEP]"};
  EXPECT_EQ(find_token(twice, "toaster", &position, &places).message(), "");
  EXPECT_EQ(position, 2);
}

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t times = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++times;
  return times;
}

TEST(Picture, ShowsEveryHeadTheCaveatAndTheFidelity) {
  std::string svg;
  ASSERT_EQ(draw_svg(draw_map(sample(), {.from = 5}), &svg).message(), "");
  EXPECT_EQ(count(svg, "<image"), 4U + 7U);  // maps and the legend
  EXPECT_TRUE(svg.starts_with("<svg xmlns"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("a &lt;model&gt;"), std::string::npos);
  EXPECT_NE(svg.find("not an account of why a model said what it said"), std::string::npos);
  EXPECT_NE(svg.find("Largest difference of a weight from float64: 1.5e-06"), std::string::npos);
  EXPECT_NE(svg.find("layer 4, head 0: the head that goes furthest beyond habits"), std::string::npos);
  EXPECT_GE(count(svg, "<path"), 2U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Picture, ShowsOneHeadWithLabels) {
  AttentionMap map = sample();
  map.layers = {4};
  std::string svg;
  ASSERT_EQ(draw_svg(draw_map(map, {.head = 1}), &svg).message(), "");
  EXPECT_EQ(count(svg, ">tle</text>"), 2U);  // its row and its column
  EXPECT_NE(svg.find("Layer 4, head 1"), std::string::npos);
  EXPECT_EQ(count(svg, "<path"), 0U);
}

TEST(Picture, IsDrawnAsPngOfItsSize) {
  const Picture picture = draw_map(sample(), {.from = 5});
  std::string png;
  ASSERT_EQ(draw_png(picture, 2, &png).message(), "");
  ASSERT_TRUE(png.starts_with("\x89PNG\r\n\x1A\n"));
  const auto number_at = [&](std::size_t at) {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number * 256 + static_cast<unsigned char>(png[at + i]);
    return number;
  };
  EXPECT_EQ(number_at(16), 2 * static_cast<std::int64_t>(picture.width));
  EXPECT_EQ(number_at(20), 2 * static_cast<std::int64_t>(picture.height));
  EXPECT_NE(draw_png({.width = 1e5, .height = 10}, 1, &png).message().find("more than are drawn here"),
            std::string::npos);
}

// Long texts: small maps of patches, arcs to the tokens with the largest weights alone.
TEST(Picture, StaysBoundedForLongTexts) {
  AttentionMap map = sample();
  constexpr std::size_t kTokens = 300;
  map.tokens.assign(kTokens, "\u2581word");
  map.special.assign(kTokens, false);
  map.weights.assign(4 * kTokens * kTokens, 0);
  for (std::size_t row = 0; row < 4 * kTokens; ++row) map.weights[row * kTokens] = 1;
  const Picture picture = draw_map(map, {.from = 299});
  EXPECT_LT(picture.width, 1700);
  for (const auto& shape : picture.shapes) {
    const auto* cells = std::get_if<Cells>(&shape);
    EXPECT_TRUE(!cells || cells->columns <= 96);
  }
}

// A weight that is no number is seen, not hidden: also in the middle of a patch.
TEST(Picture, ShowsNaN) {
  const auto first_cells = [](const Picture& picture) {
    return std::get<Cells>(*std::find_if(picture.shapes.begin(), picture.shapes.end(),
                                         [](const auto& shape) { return std::holds_alternative<Cells>(shape); }));
  };
  AttentionMap map = sample();
  map.weights[5 * 6 + 1] = NAN;
  EXPECT_EQ(first_cells(draw_map(map, {})).colours[5 * 6 + 1].red, kAccent.red);
  constexpr std::size_t kTokens = 300;
  map.tokens.assign(kTokens, "\u2581word");
  map.special.assign(kTokens, false);
  map.weights.assign(4 * kTokens * kTokens, 0.25F);
  map.weights[100 * kTokens + 50] = NAN;
  EXPECT_EQ(first_cells(draw_map(map, {})).colours[100 * 96 / 300 * 96 + 50 * 96 / 300].red, kAccent.red);
}

}  // namespace
}  // namespace attn::explain

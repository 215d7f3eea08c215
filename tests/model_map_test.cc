// Maps of models, and the roles of heads.
#include "model/map_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/decoder.h"
#include "model/head_roles.h"
#include "small_model.h"

namespace attn::model {
namespace {

using explain::AttentionMap;

std::unique_ptr<TextModel> small(const TemporaryFile& file) {
  std::unique_ptr<TextModel> model;
  EXPECT_EQ(load_model(file.path(), inline_executor(), &model).message(), "");
  return model;
}

TEST(MapTokens, KeepsEveryHeadsWeights) {
  const TemporaryFile file(small_model({}).finish());
  const auto model = small(file);
  const std::vector<Token> tokens = model->tokenizer().encode("it was the it");
  AttentionMap map;
  std::vector<float> rows;
  ASSERT_EQ(map_tokens(*model, tokens, {}, &map, &rows).message(), "");
  EXPECT_EQ(map.tokens, (std::vector<std::string>{"<s>", "\u2581it", "\u2581was", "\u2581the", "\u2581it"}));
  EXPECT_EQ(map.special, (std::vector<bool>{true, false, false, false, false}));
  EXPECT_EQ(map.layers, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(map.heads, 6);
  EXPECT_EQ(rows.size(), 5U * 64U);
  EXPECT_EQ(map.rows_judged, 5);
  EXPECT_LT(map.fidelity, 1e-5);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    for (std::int64_t head = 0; head < 6; ++head) {
      for (std::int64_t i = 0; i < 5; ++i) {
        const auto row = map.row(layer, head, i);
        double sum = 0;
        for (const float weight : row) sum += weight;
        EXPECT_NEAR(sum, 1, 1e-5);
        for (std::size_t j = static_cast<std::size_t>(i) + 1; j < 5; ++j) EXPECT_EQ(row[j], 0);
      }
    }
  }
  // One layer alone has the same numbers, and a text's rows are those without a map.
  AttentionMap one;
  ASSERT_EQ(map_tokens(*model, tokens, {.layer = 1}, &one).message(), "");
  EXPECT_EQ(one.layers, (std::vector<std::int64_t>{1}));
  EXPECT_TRUE(std::equal(one.weights.begin(), one.weights.end(), map.weights.begin() + 6 * 25));
  WholeText whole(true);
  std::vector<float> plain;
  ASSERT_EQ(model->run(tokens, whole, &plain).message(), "");
  EXPECT_EQ(plain, rows);
}

TEST(MapTokens, JudgesSomeRowsOfLongTexts) {
  const TemporaryFile file(small_model({.layers = 1}).finish());
  const auto model = small(file);
  const std::vector<Token> tokens(400, 7);
  AttentionMap map;
  ASSERT_EQ(map_tokens(*model, tokens, {}, &map).message(), "");
  EXPECT_EQ(map.rows_judged, 256);
  EXPECT_GT(map.fidelity, 0);
  EXPECT_LT(map.fidelity, 1e-5);
}

TEST(MapTokens, RefusesWhatItCanNotHold) {
  const TemporaryFile file(small_model({}).finish());
  const auto model = small(file);
  AttentionMap map;
  EXPECT_NE(map_tokens(*model, {}, {}, &map).message().find("it has no token"), std::string::npos);
  const std::vector<Token> many(513, 7);
  EXPECT_NE(map_tokens(*model, many, {}, &map).message().find("513 tokens, but the model has 512 positions"),
            std::string::npos);
  const std::vector<Token> some(100, 7);
  EXPECT_NE(map_tokens(*model, some, {.most_bytes = 100000}, &map).message().find("choose a layer"),
            std::string::npos);
  EXPECT_NE(map_tokens(*model, some, {.layer = 3}, &map).message().find("layer: 3, but the model has 3"),
            std::string::npos);
  EXPECT_TRUE(map.tokens.empty());
}

// A norm that is no number makes all that follows none: the map says so.
TEST(MapTokens, FidelityOfNaNIsNaN) {
  GgufWriter damaged = small_model({.layers = 2});
  std::string numbers(64 * 4, '\0');
  const float nan = NAN;
  numbers.replace(0, 4, reinterpret_cast<const char*>(&nan), 4);
  damaged.tensor("blk.0.attn_norm.weight", {64}, formats::GgufType::f32, numbers);
  const TemporaryFile file(damaged.finish());
  const auto model = small(file);
  AttentionMap map;
  ASSERT_EQ(map_tokens(*model, model->tokenizer().encode("it was"), {}, &map).message(), "");
  EXPECT_TRUE(std::isnan(map.fidelity));
}

// Four heads that do nothing but: previous token, same token earlier, what followed it, first token.
class Actor final : public TextModel {
 public:
  explicit Actor(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  const Tokenizer& tokenizer() const override { return tokenizer_; }
  Executor& executor() const override { return inline_executor(); }
  std::int64_t layers() const override { return 1; }
  std::int64_t heads() const override { return 4; }
  std::int64_t width() const override { return 1; }
  std::int64_t context() const override { return 1000; }
  bool causal() const override { return true; }

  Status run(std::span<const Token> tokens, LayerAttention& attention, std::vector<float>*) const override {
    const auto n = static_cast<std::int64_t>(tokens.size());
    std::vector<float> q(static_cast<std::size_t>(4 * n * n)), k(static_cast<std::size_t>(n * n)), out(q.size());
    for (std::int64_t i = 0; i < n; ++i) {
      k[static_cast<std::size_t>(i * n + i)] = 1000;
      const auto before = tokens.subspan(0, static_cast<std::size_t>(i));
      const auto same =
          std::find(before.begin(), before.end(), tokens[static_cast<std::size_t>(i)]) - before.begin();
      const std::int64_t targets[] = {std::max<std::int64_t>(i - 1, 0), same < i ? same : 0,
                                      same < i ? same + 1 : 0, 0};
      for (std::int64_t head = 0; head < 4; ++head)
        q[static_cast<std::size_t>((head * n + i) * n + targets[head])] = 1;
    }
    return attention.attend(0, {q.data(), DType::f32, {4, n, n}}, {k.data(), DType::f32, {1, n, n}},
                            {k.data(), DType::f32, {1, n, n}}, {out.data(), DType::f32, {4, n, n}});
  }

 private:
  const Tokenizer& tokenizer_;
};

TEST(Roles, AreFoundInHeadsThatPlayThem) {
  const TemporaryFile file(small_model({}).finish());
  const auto model = small(file);
  const Actor actor(model->tokenizer());
  std::vector<HeadRoles> roles;
  RoleOptions options{.length = 10};
  const std::vector<Token> text = model->tokenizer().encode("it was the");
  ASSERT_EQ(measure_roles(actor, text, options, &roles).message(), "");
  ASSERT_EQ(roles.size(), 4U);
  const auto expect = [&](std::size_t head, double previous, double duplicate, double induction, double first) {
    EXPECT_NEAR(roles[head].previous, previous, 1e-6) << head;
    EXPECT_NEAR(roles[head].duplicate, duplicate, 1e-6) << head;
    EXPECT_NEAR(roles[head].induction, induction, 1e-6) << head;
    EXPECT_NEAR(roles[head].first, first, 1e-6) << head;
  };
  expect(0, 1, 0, 0, 0);
  expect(1, 0, 1, 0, 0);
  expect(2, 0, 0, 1, 0);
  expect(3, 0, 0, 0, 1);
  EXPECT_NEAR(roles[0].text_previous, 1, 1e-6);
  EXPECT_NEAR(roles[3].text_first, 1, 1e-6);
  options.length = 200;
  EXPECT_NE(measure_roles(actor, text, options, &roles).message().find("different ones are drawn"),
            std::string::npos);
}

}  // namespace
}  // namespace attn::model

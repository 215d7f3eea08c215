// The models that scripts/get-model brings, where they are in the user's cache folder.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "decoder_judge.h"
#include "model/encoder.h"
#include "model/map_text.h"
#include "model/sampler.h"

namespace attn::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKettle = "I ordered a kettle and a toaster last week. The kettle arrived but it was broken.";

class NamedModel : public testing::Test {
 protected:
  // Loads the model, or skips the test.
  void load(const std::string& place) {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    const fs::path folder = cache && *cache == '/' ? fs::path(cache) : fs::path(home ? home : "/") / ".cache";
    path_ = (folder / "attn" / "models" / place).string();
    if (!fs::exists(path_)) GTEST_SKIP() << path_ << " is not there (scripts/get-model brings it): skipped";
    ASSERT_EQ(load_model(path_, default_executor(), &model_).message(), "");
  }

  std::string path_;
  std::unique_ptr<TextModel> model_;
};

class SmolLM2 : public NamedModel {
 protected:
  void SetUp() override { load("smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"); }
  const Decoder& decoder() const { return static_cast<const Decoder&>(*model_); }
};

class MiniLM : public NamedModel {
 protected:
  void SetUp() override { load("minilm"); }
};

// Numbers of llama.cpp (llama-cpp-python 0.3.36, tokenize(special=True)).
TEST_F(SmolLM2, HasTheTokensOfLlamaCpp) {
  using Tokens = std::vector<Token>;
  EXPECT_EQ(model_->tokenizer().encode(kKettle), (Tokens{57, 8885, 253, 44328, 284, 253, 288, 1738, 1596, 2605, 30,
                                                         378, 44328, 6612, 564, 357, 436, 6792, 30}));
  EXPECT_EQ(model_->tokenizer().encode(
                "<|im_start|>user\nIt's 1984, na\u00EFve caf\u00E9 \u2014 \u4F60\u597D!\n\n  def f(x):\t# "
                "ok<|im_end|>"),
            (Tokens{1,     4093, 198,   1589, 506, 216,  33,  41,  40, 36,  28,  15486, 46494, 37366, 1841, 216,
                    18645, 250,  48392, 138,  17,  8866, 753, 275, 24, 104, 727, 197,   19,    10907, 2}));
}

TEST_F(SmolLM2, HasTheLogitsOfAFloat64Pass) {
  const std::vector<Token> tokens = model_->tokenizer().encode("The kettle was");
  WholeText whole(true);
  std::vector<float> rows;
  ASSERT_EQ(model_->run(tokens, whole, &rows).message(), "");
  std::vector<float> logits(tokens.size() * static_cast<std::size_t>(decoder().shape().vocabulary));
  ASSERT_TRUE(decoder().logits(rows.data(), static_cast<std::int64_t>(tokens.size()), logits.data()).ok());
  formats::Gguf gguf;
  ASSERT_EQ(formats::read_gguf(path_, &gguf).message(), "");
  const std::vector<double> expected = logits_in_f64(gguf, decoder().shape(), tokens);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double error = std::abs(logits[i] - expected[i]);
    if (std::isnan(error) || error > worst) worst = error;
    largest = std::max(largest, std::abs(expected[i]));
  }
  EXPECT_LT(worst, 1e-4 * largest) << largest;
}

TEST_F(SmolLM2, AnswersAQuestion) {
  std::vector<Token> tokens = model_->tokenizer().encode(
      "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n");
  const auto begin = static_cast<std::ptrdiff_t>(tokens.size());
  std::unique_ptr<CachedText> text;
  ASSERT_EQ(CachedText::create(model_->layers(), decoder().cache_options(CacheType::f16), &text).message(), "");
  std::vector<float> rows, logits(static_cast<std::size_t>(decoder().shape().vocabulary));
  std::vector<Token> next = tokens;
  while (tokens.size() < 60 && tokens.back() != *model_->tokenizer().end()) {
    ASSERT_EQ(model_->run(next, *text, &rows).message(), "");
    ASSERT_TRUE(decoder()
                    .logits(rows.data() + rows.size() - static_cast<std::size_t>(model_->width()), 1, logits.data())
                    .ok());
    next = {Sampler(0, 0).choose(logits)};
    tokens.push_back(next.front());
  }
  const std::string answer = model_->tokenizer().decode({tokens.begin() + begin, tokens.end()});
  EXPECT_NE(answer.find("Paris"), std::string::npos) << answer;
}

TEST_F(SmolLM2, ItLooksAtTheKettle) {
  explain::AttentionMap map;
  ASSERT_EQ(map_tokens(*model_, model_->tokenizer().encode(kKettle), {}, &map).message(), "");
  EXPECT_LT(map.fidelity, 1e-5);
  std::int64_t it = 0, places = 0;
  ASSERT_EQ(explain::find_token(map, "it", &it, &places).message(), "");
  EXPECT_EQ(it, 15);
  // Among the heads that go furthest beyond habits, one looks at a kettle first.
  const auto ranking = explain::rank_heads(map, it);
  bool kettle = false;
  for (std::size_t i = 0; i < 10; ++i)
    kettle |= map.tokens[static_cast<std::size_t>(ranking[i].order.front())] == "\u2581kettle";
  EXPECT_TRUE(kettle);
}

// Numbers of transformers 5.24.0 with PyTorch 2.6.0: BertModel, mean of the last hidden state, normalised.
TEST_F(MiniLM, EmbedsAsTransformersDoes) {
  struct Sentence {
    const char* text;
    std::vector<Token> tokens;
    std::vector<float> embedding;  // its first numbers
  };
  const Sentence sentences[] = {
      {kKettle,
       {101,  1045, 3641,  1037, 22421, 1998, 1037, 15174, 2121, 2197, 2733,
        1012, 1996, 22421, 3369, 2021,  2009, 2001, 3714,  1012, 102},
       {-0.1021094F, 0.0270747F, 0.0563835F, 0.0171658F, -0.0663018F, -0.0592359F, -0.0408435F, -0.0482794F}},
      {"Caf\u00E9 d\u00E9j\u00E0-vu: na\u00EFve \u00C0\u00C9\u00CE \u2014 \u4F60\u597D\u4E16\u754C! It's 100% "
       "fine... (e.g. x=3)",
       {101,  7668, 2139, 3900, 1011, 24728, 1024, 15743, 29347, 2072, 1517, 100,
        100,  1745, 100,  999,  2009, 1005,  1055, 2531,  1003,  2986, 1012, 1012,
        1012, 1006, 1041, 1012, 1043, 1012,  1060, 1027,  1017,  1007, 102},
       {-0.0452234F, 0.0663111F, 0.0626109F, -0.0401855F, 0.0762109F, -0.0622607F, 0.0740241F, -0.113594F}}};
  for (const Sentence& sentence : sentences) {
    const std::vector<Token> tokens = model_->tokenizer().encode(sentence.text);
    EXPECT_EQ(tokens, sentence.tokens);
    WholeText whole(false);
    std::vector<float> rows;
    ASSERT_EQ(model_->run(tokens, whole, &rows).message(), "");
    const std::vector<float> embedding = mean_pooled(rows, model_->width());
    ASSERT_EQ(embedding.size(), 384U);
    for (std::size_t i = 0; i < sentence.embedding.size(); ++i)
      EXPECT_NEAR(embedding[i], sentence.embedding[i], 1e-5);
  }
}

}  // namespace
}  // namespace attn::model

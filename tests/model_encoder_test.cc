// Encoders and their tokenizer.
#include "model/encoder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "attn/isa.h"
#include "model/word_pieces.h"
#include "small_encoder.h"

namespace attn::model {
namespace {

namespace fs = std::filesystem;

class EncoderFolder : public testing::Test {
 protected:
  EncoderFolder() {
    std::string pattern = (fs::temp_directory_path() / "attn-encoder-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~EncoderFolder() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string load_message() const {
    std::unique_ptr<Encoder> encoder;
    return Encoder::load(folder_, inline_executor(), &encoder).message();
  }
  std::vector<std::string> labels(const std::string& text) const {
    std::unique_ptr<Tokenizer> tokenizer;
    EXPECT_EQ(read_word_pieces(folder_, &tokenizer).message(), "");
    std::vector<std::string> result;
    for (const Token token : tokenizer->encode(text)) result.push_back(tokenizer->label(token));
    return result;
  }

  std::string folder_;
};

const std::vector<std::string> kWords{"the", "kettle", "toast", "##er",   "was",      "broken", ".",
                                      ",",   "!",      "cafe",  "\u4F60", "\u597D",   "##s",    "a",
                                      "it",  "'",      "s",     "Cafe",   "caf\u00E9"};

TEST_F(EncoderFolder, RowsAreThoseOfAFloat64Pass) {
  for (const char* prefix : {"", "bert."}) {
    const SmallEncoder small(kWords, 3);
    small.write(folder_, prefix);
    std::unique_ptr<TextModel> model;
    ASSERT_EQ(load_model(folder_, inline_executor(), &model).message(), "");
    const std::vector<Token> tokens = model->tokenizer().encode("The kettle, the toaster: was it broken?");
    WholeText whole(false);
    std::vector<float> rows;
    ASSERT_EQ(model->run(tokens, whole, &rows).message(), "");
    const std::vector<double> expected = small.rows_in_f64(tokens);
    ASSERT_EQ(rows.size(), expected.size());
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(rows[i], expected[i], 1e-5);

    const std::vector<float> pooled = mean_pooled(rows, model->width());
    double squares = 0;
    for (const float number : pooled) squares += static_cast<double>(number) * number;
    EXPECT_NEAR(squares, 1, 1e-6);
  }
}

TEST_F(EncoderFolder, RowsAreTheSameBitsByAnyThreadsOnEveryTarget) {
  SmallEncoder(kWords, 3).write(folder_);
  const auto pool = make_thread_pool(3, 0);
  const std::vector<Token> tokens(60, 6);
  std::vector<float> expected;
  const Isa best = current_isa();
  for (const Isa isa : available_isas()) {
    if (isa == Isa::sse4) continue;
    ASSERT_TRUE(force_isa(isa).ok());
    for (Executor* executor : {&inline_executor(), pool.get()}) {
      std::unique_ptr<TextModel> model;
      ASSERT_EQ(load_model(folder_, *executor, &model).message(), "");
      WholeText whole(false, executor);
      std::vector<float> rows;
      ASSERT_EQ(model->run(tokens, whole, &rows).message(), "");
      if (expected.empty()) expected = rows;
      EXPECT_EQ(rows, expected) << name_of(isa);
    }
  }
  ASSERT_TRUE(force_isa(best).ok());
}

TEST_F(EncoderFolder, WordsAreCutIntoTheLongestPieces) {
  SmallEncoder(kWords, 3).write(folder_);
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels("The  TOASTERS\twas broken."),
            (Labels{"[CLS]", "the", "toast", "##er", "##s", "was", "broken", ".", "[SEP]"}));
  EXPECT_EQ(labels(""), (Labels{"[CLS]", "[SEP]"}));
  EXPECT_EQ(labels("it's"), (Labels{"[CLS]", "it", "'", "s", "[SEP]"}));
  EXPECT_EQ(labels("caf\u00E9 cafe\u0301"), (Labels{"[CLS]", "cafe", "cafe", "[SEP]"}));
  EXPECT_EQ(labels("a\u4F60\u597Da"), (Labels{"[CLS]", "a", "\u4F60", "\u597D", "a", "[SEP]"}));
  EXPECT_EQ(labels("a\u200B\x01 the"), (Labels{"[CLS]", "a", "the", "[SEP]"}));
  EXPECT_EQ(labels("kettlex the"), (Labels{"[CLS]", "[UNK]", "the", "[SEP]"}));
  EXPECT_EQ(labels(std::string(101, 's')), (Labels{"[CLS]", "[UNK]", "[SEP]"}));
  EXPECT_EQ(labels("a [SEP]the"), (Labels{"[CLS]", "a", "[SEP]", "the", "[SEP]"}));
  EXPECT_EQ(labels("\xFFthe\xC3"), (Labels{"[CLS]", "the", "[SEP]"}));
  put("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(labels("Cafe The caf\u00E9"), (Labels{"[CLS]", "Cafe", "[UNK]", "caf\u00E9", "[SEP]"}));
}

TEST_F(EncoderFolder, TextsComeBack) {
  SmallEncoder(kWords, 3).write(folder_);
  std::unique_ptr<Tokenizer> tokenizer;
  ASSERT_EQ(read_word_pieces(folder_, &tokenizer).message(), "");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("The toasters was broken")), "the toasters was broken");
  EXPECT_EQ(tokenizer->begin(), 2);
  EXPECT_EQ(tokenizer->end(), 3);
}

TEST_F(EncoderFolder, FaultsAreRefusedByName) {
  const SmallEncoder small(kWords, 3);
  const auto expect = [&](const std::string& piece) {
    EXPECT_NE(load_message().find(piece), std::string::npos) << load_message();
    small.write(folder_);
  };
  expect("config.json");
  EXPECT_EQ(load_message(), "");
  const auto with_config = [&](const std::string& from, const std::string& to) {
    std::string config = small.config();
    config.replace(config.find(from), from.size(), to);
    put("config.json", config);
  };
  put("config.json", "{");
  expect("is no JSON object");
  with_config("\"gelu\"", "\"relu\"");
  expect("hidden_act 'relu'");
  with_config("\"bert\"", "\"t5\"");
  expect("model_type 't5'");
  with_config("\"hidden_size\":24", "\"hidden_size\":-24");
  expect("no hidden_size");
  with_config("\"hidden_size\":24", "\"hidden_size\":25");
  expect("does not split into 3 heads");
  with_config("\"hidden_size\":24", "\"hidden_size\":48");
  expect("but config.json says");
  with_config("\"num_hidden_layers\":2", "\"num_hidden_layers\":3");
  expect("encoder.layer.2");
  with_config("\"vocab_size\":23", "\"vocab_size\":5");
  expect("vocab.txt has 23 tokens, but config.json says 5");
  put("vocab.txt", "[UNK]\n[CLS]\na\n");
  expect("vocab.txt has no [SEP]");
  fs::remove(folder_ + "/vocab.txt");
  expect("vocab.txt");
  put("model.safetensors", small.safetensors().substr(0, 500));
  expect("model.safetensors");
}

TEST_F(EncoderFolder, RefusesPositionsItDoesNotHave) {
  SmallEncoder(kWords, 3).write(folder_);
  std::unique_ptr<Encoder> encoder;
  ASSERT_EQ(Encoder::load(folder_, inline_executor(), &encoder).message(), "");
  WholeText whole(false);
  std::vector<float> rows;
  EXPECT_NE(encoder->run(std::vector<Token>(65, 5), whole, &rows).message().find("at most 64"), std::string::npos);
  EXPECT_NE(encoder->run(std::vector<Token>(5, 23), whole, &rows).message().find("token 23"), std::string::npos);
}

}  // namespace
}  // namespace attn::model

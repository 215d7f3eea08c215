// Damaged models: whatever is changed, the answer is an error or a model that runs; never a crash, never much memory.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "model/text_model.h"
#include "small_encoder.h"
#include "small_model.h"

namespace attn::model {
namespace {

namespace fs = std::filesystem;

// Damaged models to try, in percent of what is usual.
int effort() {
  const char* wish = std::getenv("ATTN_TEST_EFFORT");
  return wish ? std::max(1, std::atoi(wish)) : 100;
}

// Loads the model and, where that goes well, runs a text. Returns whether it was loaded.
bool survives(const std::string& path) {
  std::unique_ptr<TextModel> model;
  const Status status = load_model(path, inline_executor(), &model);
  if (!status.ok()) {
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    return false;
  }
  std::vector<Token> tokens = model->tokenizer().encode("it was <s> the \xFF kettle");
  tokens.resize(std::min<std::size_t>(tokens.size(), 6));
  std::string labels = model->tokenizer().decode(tokens);
  for (const Token token : tokens) labels += model->tokenizer().label(token);
  WholeText whole(model->causal());
  std::vector<float> rows;
  const Status ran = model->run(tokens, whole, &rows);
  EXPECT_EQ(ran.ok(), rows.size() == tokens.size() * static_cast<std::size_t>(model->width())) << ran.message();
  return true;
}

// One to four changes within the first `reach` bytes: other bytes, numbers that are likely to hurt, pieces lost or doubled.
std::string damaged(std::string bytes, std::size_t reach, std::mt19937_64& random) {
  for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
    const std::size_t at = random() % std::min(reach, bytes.size());
    const std::uint64_t hurts[] = {0,      1, 0x7F, 0xFF, 0xFFFFFFFF, std::uint64_t{1} << 63, ~std::uint64_t{0},
                                   1 << 20};
    const std::size_t length = std::min<std::size_t>(1 + random() % 8, bytes.size() - at);
    switch (random() % 5) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 2: {
        const std::uint64_t number = hurts[random() % std::size(hurts)];
        bytes.replace(at, length, reinterpret_cast<const char*>(&number), length);
        break;
      }
      case 3: bytes.erase(at, length); break;
      default: bytes.insert(at, bytes.substr(at, length)); break;
    }
  }
  return bytes;
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(DamagedModels, GgufFilesAreRefusedOrRun) {
  const SmallModel shape{.layers = 1,
                         .width = 32,
                         .heads = 2,
                         .kv_heads = 1,
                         .head_dim = 16,
                         .hidden = 32,
                         .type = formats::GgufType::q8_0};
  const std::string whole = small_model(shape).finish();
  const TemporaryFile file(whole);
  ASSERT_TRUE(survives(file.path()));
  std::mt19937_64 random(11);
  int loaded = 0;
  const int tries = 30 * effort();
  for (int i = 0; i < tries; ++i) {
    // The header is what can be wrong: most of it are texts of tokens, its beginning and end are not.
    write(file.path(), damaged(whole, i % 3 == 0 ? 600 : whole.size(), random));
    loaded += survives(file.path());
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, tries);
}

TEST(DamagedModels, EncodersAreRefusedOrRun) {
  std::string folder = (fs::temp_directory_path() / "attn-damaged-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const SmallEncoder small({"it", "was", "the", "ket", "##tle", "."}, 4);
  const std::string texts[] = {small.config(), small.vocabulary_text(), small.safetensors()};
  const char* names[] = {"config.json", "vocab.txt", "model.safetensors"};
  std::mt19937_64 random(12);
  int loaded = 0;
  const int tries = 10 * effort();
  for (int i = 0; i < tries; ++i) {
    small.write(folder);
    const std::size_t which = random() % 3;
    write(folder + "/" + names[which], damaged(texts[which], 3000, random));
    loaded += survives(folder);
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, tries);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace attn::model

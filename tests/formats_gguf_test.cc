// GGUF files: what is read, and every fault that is refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "attn/dtype.h"
#include "formats/gguf.h"

namespace attn::formats {
namespace {

namespace fs = std::filesystem;

// A file in the making.
struct Bits {
  std::string bytes;

  template <class Number>
  Bits& put(Number number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Bits& text(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes += text;
    return *this;
  }
};

struct TensorEntry {
  std::string name;
  std::vector<std::uint64_t> sizes;  // innermost first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
};

// A header of facts that were put into `facts`, and tensors.
std::string file_of(std::uint64_t fact_count, const Bits& facts, const std::vector<TensorEntry>& tensors,
                    std::size_t data_bytes, std::uint32_t version = 3, std::size_t alignment = 32) {
  Bits file;
  file.bytes = "GGUF";
  file.put(version).put(static_cast<std::uint64_t>(tensors.size())).put(fact_count);
  file.bytes += facts.bytes;
  for (const TensorEntry& t : tensors) {
    file.text(t.name).put(static_cast<std::uint32_t>(t.sizes.size()));
    for (const std::uint64_t size : t.sizes) file.put(size);
    file.put(t.type).put(t.offset);
  }
  if (!tensors.empty()) file.bytes.resize((file.bytes.size() + alignment - 1) / alignment * alignment);
  for (std::size_t i = 0; i < data_bytes; ++i) file.bytes += static_cast<char>(i * 37 + 11);
  return file.bytes;
}

class GgufFile : public testing::Test {
 protected:
  GgufFile() : path_(fs::temp_directory_path() / ("attn-gguf-" + std::to_string(std::random_device()()))) {}
  ~GgufFile() override { fs::remove(path_); }

  std::string read(const std::string& bytes, Gguf* gguf) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return read_gguf(path_.string(), gguf).message();
  }

  void expect_refused(const std::string& bytes, const std::string& piece) {
    Gguf gguf;
    const std::string message = read(bytes, &gguf);
    EXPECT_NE(message.find(piece), std::string::npos) << message;
    EXPECT_NE(message.find("; fetch or convert the file again"), std::string::npos) << message;
    EXPECT_TRUE(gguf.tensors.empty() && gguf.facts.empty());
  }

  fs::path path_;
};

Bits sample_facts() {
  Bits facts;
  facts.text("general.architecture").put(std::uint32_t{8}).text("llama");
  facts.text("llama.block_count").put(std::uint32_t{4}).put(std::uint32_t{5});
  facts.text("norm.epsilon").put(std::uint32_t{6}).put(1e-5F);
  facts.text("flag").put(std::uint32_t{7}).put(std::uint8_t{1});
  facts.text("tokens").put(std::uint32_t{9}).put(std::uint32_t{8}).put(std::uint64_t{2}).text("a").text("");
  facts.text("scores").put(std::uint32_t{9}).put(std::uint32_t{6}).put(std::uint64_t{2}).put(0.5F).put(-2.0F);
  facts.text("types").put(std::uint32_t{9}).put(std::uint32_t{5}).put(std::uint64_t{1}).put(std::int32_t{-3});
  facts.text("large").put(std::uint32_t{10}).put(std::uint64_t{1} << 60);
  facts.text("small").put(std::uint32_t{1}).put(std::int8_t{-7});
  return facts;
}

TEST_F(GgufFile, FactsAndTensorsAreRead) {
  for (const std::uint32_t version : {2, 3}) {
    Gguf gguf;
    ASSERT_EQ(read(file_of(9, sample_facts(), {{"a", {4, 3, 2}, 0, 0}, {"b", {32}, 8, 96}}, 130, version), &gguf),
              "");
    EXPECT_EQ(std::get<std::string>(gguf.facts.at("general.architecture")), "llama");
    EXPECT_EQ(std::get<std::int64_t>(gguf.facts.at("llama.block_count")), 5);
    EXPECT_EQ(std::get<double>(gguf.facts.at("norm.epsilon")), static_cast<double>(1e-5F));
    EXPECT_EQ(std::get<bool>(gguf.facts.at("flag")), true);
    EXPECT_EQ(std::get<std::vector<std::string>>(gguf.facts.at("tokens")), (std::vector<std::string>{"a", ""}));
    EXPECT_EQ(std::get<std::vector<double>>(gguf.facts.at("scores")), (std::vector<double>{0.5, -2}));
    EXPECT_EQ(std::get<std::vector<std::int64_t>>(gguf.facts.at("types")), (std::vector<std::int64_t>{-3}));
    EXPECT_EQ(std::get<std::int64_t>(gguf.facts.at("large")), std::int64_t{1} << 60);
    EXPECT_EQ(std::get<std::int64_t>(gguf.facts.at("small")), -7);
    const GgufTensor& a = gguf.tensors.at("a");
    EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_EQ(a.rows(), 6);
    EXPECT_EQ(a.columns(), 4);
    EXPECT_EQ(gguf.tensors.at("b").data - a.data, 96);
  }
}

TEST_F(GgufFile, WithFaultsIsRefusedByName) {
  const Bits none;
  const auto one = [](const std::string& key) {
    Bits facts;
    return facts.text(key).put(std::uint32_t{4}).put(std::uint32_t{1});
  };
  expect_refused("GGUX", "is no GGUF file");
  expect_refused("GG", "is cut short");
  expect_refused(file_of(0, none, {}, 0, 1), "is GGUF of version 1, and 2 and 3 are read");
  expect_refused(file_of(0, none, {}, 0, 4), "version 4");
  Bits many;
  many.bytes = "GGUF";
  expect_refused(many.put(std::uint32_t{3}).put(std::uint64_t{1} << 60).put(std::uint64_t{0}).bytes,
                 "tensors, but only");
  expect_refused(file_of(std::uint64_t{1} << 50, none, {}, 0), "facts, but only");
  Bits twice = one("x");
  twice.bytes += one("x").bytes;
  expect_refused(file_of(2, twice, {}, 0), "has the key 'x' twice");
  expect_refused(file_of(1, one(""), {}, 0), "a key has 0 bytes");
  expect_refused(file_of(1, one(std::string(65536, 'k')), {}, 0), "a key has 65536 bytes");
  Bits type;
  expect_refused(file_of(1, type.text("x").put(std::uint32_t{13}).put(std::uint64_t{0}), {}, 0),
                 "has type 13, which is none");
  Bits nested;
  nested.text("x").put(std::uint32_t{9}).put(std::uint32_t{9}).put(std::uint64_t{0});
  expect_refused(file_of(1, nested, {}, 0), "is a list of type 9");
  Bits long_list;
  long_list.text("x").put(std::uint32_t{9}).put(std::uint32_t{0}).put(std::uint64_t{1} << 62);
  expect_refused(file_of(1, long_list, {}, 0), "list entries, but only");
  Bits long_text;
  long_text.text("x").put(std::uint32_t{8}).put(std::uint64_t{1} << 62);
  expect_refused(file_of(1, long_text, {}, 0), "is cut short within a text");
  Bits truth;
  expect_refused(file_of(1, truth.text("x").put(std::uint32_t{7}).put(std::uint8_t{2}), {}, 0), "truth value of 2");
  Bits large;
  expect_refused(file_of(1, large.text("x").put(std::uint32_t{10}).put(~std::uint64_t{0}), {}, 0),
                 "beyond 2^63 - 1");
  Bits alignment;
  alignment.text("general.alignment").put(std::uint32_t{4}).put(std::uint32_t{24});
  expect_refused(file_of(1, alignment, {{"a", {1}, 0, 0}}, 4), "general.alignment is no power of two");

  expect_refused(file_of(0, none, {{"a", {4}, 0, 0}, {"a", {4}, 0, 32}}, 64), "has the tensor 'a' twice");
  expect_refused(file_of(0, none, {{"", {4}, 0, 0}}, 64), "a tensor's name has 0 bytes");
  expect_refused(file_of(0, none, {{"a", {}, 0, 0}}, 64), "has 0 dimensions, and 1 to 4 are read");
  expect_refused(file_of(0, none, {{"a", {1, 1, 1, 1, 1}, 0, 0}}, 64), "has 5 dimensions");
  expect_refused(file_of(0, none, {{"a", {32}, 6, 0}}, 64), "has type 6, and F32, F16");
  expect_refused(file_of(0, none, {{"a", {0}, 0, 0}}, 64), "has a size of 0");
  expect_refused(file_of(0, none, {{"a", {1ULL << 40, 1ULL << 40}, 0, 0}}, 64), "more numbers than 63 bits count");
  expect_refused(file_of(0, none, {{"a", {1ULL << 62}, 0, 0}}, 64), "more numbers than 63 bits count");
  expect_refused(file_of(0, none, {{"a", {33}, 8, 0}}, 64),
                 "has rows of 33 numbers, but Q8_0 goes in blocks of 32");
  expect_refused(file_of(0, none, {{"a", {4}, 0, 4}}, 64), "no multiple of 32");
  expect_refused(file_of(0, none, {{"a", {32}, 0, 0}, {"b", {4}, 0, 64}}, 256),
                 "the tensor 'b' lies on another one");
  expect_refused(file_of(0, none, {{"a", {32}, 0, 0}}, 127), "but there are 127 bytes of data");
  expect_refused(file_of(0, none, {{"a", {1}, 0, ~std::uint64_t{31}}}, 64), "bytes of data");
}

TEST_F(GgufFile, CutOrChangedAnywhereIsAnswered) {
  const std::string whole = file_of(9, sample_facts(), {{"a", {4, 3, 2}, 0, 0}, {"b", {32}, 8, 96}}, 130);
  Gguf gguf;
  for (std::size_t length = 1; length < whole.size(); ++length)
    ASSERT_NE(read(whole.substr(0, length), &gguf), "") << length << " of " << whole.size();
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = whole;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n)
      changed[random() % whole.size()] = static_cast<char>(random());
    (void)read(changed, &gguf);
  }
}

// Number i of a block, bit by bit from the format's description.
float by_definition(GgufType type, const unsigned char* b, int i) {
  const auto half = [&](int at) { return f16_to_float(static_cast<std::uint16_t>(b[at] | b[at + 1] << 8)); };
  switch (type) {
    case GgufType::q8_0: return half(0) * static_cast<float>(static_cast<std::int8_t>(b[2 + i]));
    case GgufType::q4_0: return half(0) * static_cast<float>((b[2 + i % 16] >> (i / 16 * 4) & 15) - 8);
    case GgufType::q4_1: return half(0) * static_cast<float>(b[4 + i % 16] >> (i / 16 * 4) & 15) + half(2);
    case GgufType::q4_k: {
      const int group = i / 32, number = b[16 + i / 64 * 32 + i % 32] >> (group % 2 * 4) & 15;
      const unsigned char* s = b + 4;
      const int scale = group < 4 ? s[group] & 63 : (s[group + 4] & 15) + (s[group - 4] >> 6) * 16;
      const int least = group < 4 ? s[group + 4] & 63 : (s[group + 4] >> 4) + (s[group] >> 6) * 16;
      return half(0) * static_cast<float>(scale) * static_cast<float>(number) - half(2) * static_cast<float>(least);
    }
    default: {
      const int part = i / 128, run = i % 128 / 32, l = i % 32;
      const int low = b[64 * part + l + 32 * (run % 2)] >> (run / 2 * 4) & 15,
                high = b[128 + 32 * part + l] >> (2 * run) & 3;
      const int scale = static_cast<std::int8_t>(b[192 + i / 16]);
      return half(208) * static_cast<float>(scale) * static_cast<float>(low + 16 * high - 32);
    }
  }
}

TEST(GgufBlocks, AreTheNumbersOfTheDescription) {
  std::mt19937 random(3);
  for (const GgufType type : {GgufType::q8_0, GgufType::q4_0, GgufType::q4_1, GgufType::q4_k, GgufType::q6_k}) {
    const GgufBlock block = block_of(type);
    std::vector<unsigned char> bytes(6 * block.bytes);
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    // Scales that are numbers.
    for (std::size_t at = 0; at < bytes.size(); at += block.bytes) {
      for (const int half : {0, 2, 208}) {
        if (half + 1 < block.bytes) bytes[at + half + 1] = static_cast<unsigned char>(bytes[at + half + 1] & 0xBF);
      }
    }
    const GgufTensor tensor{"t", type, {3, 2 * block.numbers}, bytes.data()};
    std::vector<float> row(tensor.columns());
    for (std::int64_t r = 0; r < 3; ++r) {
      dequantise_row(tensor, r, row.data());
      for (std::int64_t i = 0; i < tensor.columns(); ++i) {
        const unsigned char* b = bytes.data() + (2 * r + i / block.numbers) * block.bytes;
        ASSERT_EQ(row[i], by_definition(type, b, static_cast<int>(i % block.numbers))) << name_of(type) << " " << i;
      }
    }
  }
}

TEST(GgufBlocks, OfSingleNumbersAreThese) {
  const float f32[] = {1.5F, -2};
  const std::uint16_t f16[] = {float_to_f16(1.5F), float_to_f16(-2)},
                      bf16[] = {float_to_bf16(1.5F), float_to_bf16(-2)};
  for (const auto& [type, data] :
       {std::pair<GgufType, const void*>{GgufType::f32, f32}, {GgufType::f16, f16}, {GgufType::bf16, bf16}}) {
    float row[2] = {};
    dequantise_row({"t", type, {2}, static_cast<const unsigned char*>(data)}, 0, row);
    EXPECT_EQ(row[0], 1.5F);
    EXPECT_EQ(row[1], -2);
  }
}

TEST(GgufModel, OfStoriesIsRead) {
  const std::string path = ATTN_SHARED "/models/stories260K.gguf";
  if (!fs::exists(path)) GTEST_SKIP() << path << " is not there: skipped";
  Gguf gguf;
  ASSERT_EQ(read_gguf(path, &gguf).message(), "");
  EXPECT_EQ(std::get<std::string>(gguf.facts.at("general.architecture")), "llama");
  EXPECT_GT(gguf.tensors.size(), 20U);
  EXPECT_EQ(std::get<std::vector<std::string>>(gguf.facts.at("tokenizer.ggml.tokens")).size(),
            static_cast<std::size_t>(gguf.tensors.at("token_embd.weight").rows()));
}

}  // namespace
}  // namespace attn::formats

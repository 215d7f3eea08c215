// Text to tokens and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "model/tokenizer.h"
#include "model/words.h"

namespace attn::model {
namespace {

using formats::Gguf;
using formats::GgufValue;

// Unknown, begin, end, 256 bytes, and some pieces: the earlier, the better.
Gguf small_vocabulary(const std::vector<std::string>& pieces) {
  std::vector<std::string> texts{"<unk>", "<s>", "</s>"};
  std::vector<std::int64_t> kinds{2, 3, 3};
  std::vector<double> scores(259, 0.0);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    texts.emplace_back(text);
    kinds.push_back(6);
  }
  for (const std::string& piece : pieces) {
    texts.push_back(piece);
    kinds.push_back(1);
    scores.push_back(-static_cast<double>(scores.size() - 259));
  }
  Gguf gguf;
  gguf.facts["tokenizer.ggml.model"] = std::string("llama");
  gguf.facts["tokenizer.ggml.tokens"] = texts;
  gguf.facts["tokenizer.ggml.scores"] = scores;
  gguf.facts["tokenizer.ggml.token_type"] = kinds;
  gguf.facts["tokenizer.ggml.bos_token_id"] = std::int64_t{1};
  gguf.facts["tokenizer.ggml.eos_token_id"] = std::int64_t{2};
  gguf.facts["tokenizer.ggml.unknown_token_id"] = std::int64_t{0};
  return gguf;
}

std::unique_ptr<Tokenizer> tokenizer_of(const Gguf& gguf) {
  std::unique_ptr<Tokenizer> tokenizer;
  EXPECT_EQ(read_tokenizer(gguf, &tokenizer).message(), "");
  return tokenizer;
}

std::vector<std::string> labels(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::string> result;
  for (const Token token : tokenizer.encode(text)) result.push_back(tokenizer.label(token));
  return result;
}

TEST(PieceTokenizer, MergesTheBestPairFirst) {
  const auto tokenizer = tokenizer_of(small_vocabulary({"bc", "ab", "abc", "\u2581", "a", "b", "c", "\u2581a"}));
  using Labels = std::vector<std::string>;
  // "bc" wins over "ab", and then "a" + "bc" is a piece.
  EXPECT_EQ(labels(*tokenizer, "abc"), (Labels{"<s>", "\u2581", "abc"}));
  EXPECT_EQ(labels(*tokenizer, "ab"), (Labels{"<s>", "\u2581", "ab"}));
  EXPECT_EQ(labels(*tokenizer, "a a"), (Labels{"<s>", "\u2581a", "\u2581a"}));
  EXPECT_EQ(labels(*tokenizer, "aé"), (Labels{"<s>", "\u2581a", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(labels(*tokenizer, ""), (Labels{"<s>"}));
  EXPECT_EQ(labels(*tokenizer, "\xFF"), (Labels{"<s>", "\u2581", "<0xFF>"}));
}

TEST(PieceTokenizer, GivesTextsBack) {
  const auto tokenizer =
      tokenizer_of(small_vocabulary({"\u2581t", "he", "\u2581the", "th", "e", "t", "h", "\u2581"}));
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 30; n > 0; --n) {
      text += random() % 3 == 0 ? static_cast<char>(random()) : "the  th\n"[random() % 8];
    }
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

// The same by looking at all pairs again after each merge.
std::vector<std::string> merged_slowly(const Gguf& gguf, const std::string& text) {
  const auto& texts = std::get<std::vector<std::string>>(gguf.facts.at("tokenizer.ggml.tokens"));
  const auto& scores = std::get<std::vector<double>>(gguf.facts.at("tokenizer.ggml.scores"));
  std::vector<std::string> pieces{"\u2581"};
  for (const char c : text) pieces.push_back(c == ' ' ? "\u2581" : std::string(1, c));
  for (;;) {
    std::size_t best = pieces.size();
    double best_score = -1e300;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto found = std::find(texts.begin(), texts.end(), pieces[i] + pieces[i + 1]);
      if (found == texts.end() || scores[found - texts.begin()] <= best_score) continue;
      best_score = scores[found - texts.begin()];
      best = i;
    }
    if (best == pieces.size()) return pieces;
    pieces[best] += pieces[best + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(PieceTokenizer, MergesAsTheSlowWayDoes) {
  const Gguf gguf = small_vocabulary(
      {"ab", "ba", "aa", "aab", "bab", "abab", "\u2581a", "aaa", "a", "b", "\u2581", "b\u2581", "bb"});
  const auto tokenizer = tokenizer_of(gguf);
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t n = 1 + random() % 20; n > 0; --n) text += "aab "[random() % 4];
    std::vector<std::string> expected = merged_slowly(gguf, text);
    expected.insert(expected.begin(), "<s>");
    ASSERT_EQ(labels(*tokenizer, text), expected) << text;
  }
}

TEST(PieceTokenizer, RefusesFactsThatDoNotFit) {
  const auto message = [](const char* key, const std::optional<GgufValue>& value) {
    Gguf gguf = small_vocabulary({"a"});
    if (value) {
      gguf.facts[key] = *value;
    } else {
      gguf.facts.erase(key);
    }
    std::unique_ptr<Tokenizer> tokenizer;
    return read_tokenizer(gguf, &tokenizer).message();
  };
  EXPECT_NE(message("tokenizer.ggml.model", std::nullopt).find("tokenizer.ggml.model is missing"),
            std::string::npos);
  EXPECT_NE(message("tokenizer.ggml.model", std::string("gpt9")).find("'gpt9' is not available"),
            std::string::npos);
  EXPECT_NE(message("tokenizer.ggml.tokens", std::int64_t{3}).find("has another type"), std::string::npos);
  EXPECT_NE(message("tokenizer.ggml.scores", std::vector<double>{1}).find("260 tokens, 1 scores"),
            std::string::npos);
  EXPECT_NE(message("tokenizer.ggml.bos_token_id", std::int64_t{260}).find("is 260, but there are 260"),
            std::string::npos);
}

std::vector<std::string> words(const std::string& text, WordRule rule) {
  std::vector<std::string> result;
  for (const std::string_view word : split_words(text, rule)) result.emplace_back(word);
  return result;
}

// What the regular expressions of the originals give (checked with Python's regex package).
TEST(Words, AreCutAsTheExpressionsSay) {
  using Words = std::vector<std::string>;
  const std::string text = "I'm  here, 1234 caf\u00e9s\n\n  don't'LL x\u00b2 ";
  EXPECT_EQ(words(text, WordRule::gpt2), (Words{"I", "'m", " ", " here", ",", " 1234", " caf\u00e9s", "\n\n ",
                                                " don", "'t", "'", "LL", " x", "\u00b2", " "}));
  EXPECT_EQ(words(text, WordRule::digits),
            (Words{"I", "'m", " ", " here", ",", " ", "1", "2", "3", "4", " caf\u00e9s", "\n\n ", " don", "'t", "'",
                   "LL", " x", "\u00b2", " "}));
  EXPECT_EQ(words(text, WordRule::llama3), (Words{"I", "'m", " ", " here", ",", " ", "123", "4", " caf\u00e9s",
                                                  "\n\n", " ", " don", "'t", "'LL", " x", "\u00b2", " "}));
  EXPECT_EQ(words("a\tb !?\r\nc", WordRule::llama3), (Words{"a", "\tb", " !?\r\n", "c"}));
  EXPECT_EQ(words("", WordRule::gpt2), Words{});
  EXPECT_EQ(words("\xFF\xFE a", WordRule::gpt2), (Words{"\xFF\xFE", " a"}));
}

TEST(Words, AreAllOfTheText) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    const std::vector<std::string> pieces{" ",      "\n", "a",    "Z",      "'s", "7",
                                          "\u00e9", "!",  "\xE2", "\u3000", "\r", "\t"};
    for (std::uint64_t n = random() % 20; n > 0; --n) text += pieces[random() % pieces.size()];
    for (const WordRule rule : {WordRule::gpt2, WordRule::digits, WordRule::llama3}) {
      std::string joined;
      for (const std::string& word : words(text, rule)) {
        ASSERT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

// The 256 bytes in GPT-2's alphabet, pieces that merges make, and two special tokens.
Gguf small_byte_vocabulary() {
  std::vector<std::string> texts{"<|end|>", "<|im|>"};
  std::vector<std::int64_t> kinds{3, 4};
  for (int code = 33, extra = 0x100; code < 33 + 256; ++code) {
    const int byte = code & 255;
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const int shown = printable ? byte : extra++;
    texts.push_back(
        shown < 128 ? std::string(1, static_cast<char>(shown))
                    : std::string{static_cast<char>(0xC0 | shown >> 6), static_cast<char>(0x80 | (shown & 63))});
  }
  const std::vector<std::string> merges{"\u0120 t", "h e", "\u0120t he", "a b", "b c", "\u00c3 \u00a9"};
  for (const char* piece : {"\u0120t", "he", "\u0120the", "ab", "bc", "\u00c3\u00a9"}) texts.emplace_back(piece);
  kinds.resize(texts.size(), 1);
  Gguf gguf;
  gguf.facts["tokenizer.ggml.model"] = std::string("gpt2");
  gguf.facts["tokenizer.ggml.pre"] = std::string("smollm");
  gguf.facts["tokenizer.ggml.tokens"] = texts;
  gguf.facts["tokenizer.ggml.token_type"] = kinds;
  gguf.facts["tokenizer.ggml.merges"] = merges;
  gguf.facts["tokenizer.ggml.eos_token_id"] = std::int64_t{0};
  return gguf;
}

TEST(ByteTokenizer, MergesInTheLearnedOrder) {
  using Labels = std::vector<std::string>;
  const auto tokenizer = tokenizer_of(small_byte_vocabulary());
  EXPECT_EQ(labels(*tokenizer, " the abc"), (Labels{"\u2581the", "\u2581", "ab", "c"}));
  EXPECT_EQ(labels(*tokenizer, "the\n"), (Labels{"t", "he", "\\n"}));
  EXPECT_EQ(labels(*tokenizer, "\u00e9\u00e8"), (Labels{"\u00e9", "<0xC3>", "<0xA8>"}));
  EXPECT_EQ(labels(*tokenizer, "a<|im|>b<|end|>"), (Labels{"a", "<|im|>", "b", "<|end|>"}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a<|im|>b<|end|>")), "a<|im|>b");
  EXPECT_TRUE(tokenizer->encode("").empty());
  EXPECT_EQ(tokenizer->begin(), std::nullopt);
}

TEST(ByteTokenizer, GivesAnyBytesBack) {
  const auto tokenizer = tokenizer_of(small_byte_vocabulary());
  std::mt19937_64 random(4);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t n = random() % 30; n > 0; --n)
      text += random() % 3 == 0 ? static_cast<char>(random()) : " the abc"[random() % 8];
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

// Llama 3: a begin token in front unless the file says otherwise, and words that are tokens are taken whole.
TEST(ByteTokenizer, OfLlama3TakesWholeWords) {
  Gguf gguf = small_byte_vocabulary();
  auto& texts = std::get<std::vector<std::string>>(gguf.facts["tokenizer.ggml.tokens"]);
  texts.emplace_back("cab");
  std::get<std::vector<std::int64_t>>(gguf.facts["tokenizer.ggml.token_type"]).push_back(1);
  gguf.facts["tokenizer.ggml.bos_token_id"] = std::int64_t{0};
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels(*tokenizer_of(gguf), "cab cab"), (Labels{"c", "ab", "\u2581", "c", "ab"}));
  gguf.facts["tokenizer.ggml.pre"] = std::string("llama-bpe");
  EXPECT_EQ(labels(*tokenizer_of(gguf), "cab"), (Labels{"<|end|>", "cab"}));
  gguf.facts["tokenizer.ggml.add_bos_token"] = false;
  EXPECT_EQ(labels(*tokenizer_of(gguf), "cab"), (Labels{"cab"}));
}

TEST(ByteTokenizer, RefusesRulesThatItDoesNotKnow) {
  Gguf gguf = small_byte_vocabulary();
  gguf.facts["tokenizer.ggml.pre"] = std::string("qwen2");
  std::unique_ptr<Tokenizer> tokenizer;
  EXPECT_NE(read_tokenizer(gguf, &tokenizer).message().find("'qwen2' is not available"), std::string::npos);
}

TEST(StoryTokenizer, GivesTheExpectedStoryBack) {
  const std::string folder = ATTN_SHARED "/models";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there: skipped";
  Gguf gguf;
  ASSERT_EQ(formats::read_gguf(folder + "/stories260K.gguf", &gguf).message(), "");
  const auto tokenizer = tokenizer_of(gguf);
  EXPECT_EQ(tokenizer->size(), 512);
  EXPECT_EQ(tokenizer->begin(), 1);
  std::ifstream file(folder + "/stories260K.expected.txt");
  const std::string story{std::istreambuf_iterator<char>(file), {}};
  const std::vector<Token> tokens = tokenizer->encode(story);
  EXPECT_EQ(tokenizer->decode(tokens), story);
  // Written by the model, 200 positions long: the tokenizer finds about as few.
  EXPECT_LE(tokens.size(), 203U);
}

}  // namespace
}  // namespace attn::model

// Decoders: their logits are those of a float64 forward pass, and the same bits however a text is cut, cached or threaded.
#include "model/decoder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "attn/isa.h"
#include "decoder_judge.h"
#include "model/sampler.h"
#include "small_model.h"

namespace attn::model {
namespace {

using formats::Gguf;
using formats::GgufType;

Gguf read(const std::string& path) {
  Gguf gguf;
  EXPECT_EQ(formats::read_gguf(path, &gguf).message(), "");
  return gguf;
}

std::unique_ptr<Decoder> decoder_of(const Gguf& gguf, Executor& executor = inline_executor()) {
  std::unique_ptr<Decoder> decoder;
  EXPECT_EQ(Decoder::load(gguf, executor, &decoder).message(), "");
  return decoder;
}

std::unique_ptr<CachedText> cached(const Decoder& decoder, CacheType type = CacheType::f32) {
  std::unique_ptr<CachedText> text;
  EXPECT_EQ(CachedText::create(decoder.shape().layers, decoder.cache_options(type), &text).message(), "");
  return text;
}

std::vector<Token> random_tokens(const Decoder& decoder, std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<Token> tokens;
  while (tokens.size() < count)
    tokens.push_back(static_cast<Token>(random() % static_cast<std::uint64_t>(decoder.shape().vocabulary)));
  return tokens;
}

// Logits of all tokens, `chunk` of them at a time.
std::vector<float> logits_of(const Decoder& decoder, std::span<const Token> tokens, std::size_t chunk,
                             LayerAttention& attention) {
  std::vector<float> all;
  for (std::size_t done = 0; done < tokens.size(); done += chunk) {
    const auto part = tokens.subspan(done, std::min(chunk, tokens.size() - done));
    std::vector<float> rows;
    EXPECT_EQ(decoder.run(part, attention, &rows).message(), "");
    std::vector<float> logits(part.size() * static_cast<std::size_t>(decoder.shape().vocabulary));
    EXPECT_EQ(decoder.logits(rows.data(), static_cast<std::int64_t>(part.size()), logits.data()).message(), "");
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

std::vector<float> logits_of_whole(const Decoder& decoder, std::span<const Token> tokens) {
  WholeText whole(true, &decoder.executor());
  return logits_of(decoder, tokens, tokens.size(), whole);
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]);
    worst = error > worst || std::isnan(error) ? error : worst;
    if (std::isnan(worst)) break;
  }
  EXPECT_LE(worst, tolerance);
}

// Random weights make logits of some tens: rounding is seen beside the largest of them.
double tolerance_for(const std::vector<double>& logits) {
  double largest = 0;
  for (const double logit : logits) largest = std::max(largest, std::abs(logit));
  return 3e-5 * largest;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Decoder, GivesTheLogitsOfAFloat64Pass) {
  for (const GgufType type : {GgufType::f32, GgufType::bf16, GgufType::q8_0, GgufType::q4_0, GgufType::q4_1}) {
    for (const bool tied : {true, false}) {
      const TemporaryFile file(small_model({.type = type, .tied = tied}).finish());
      const Gguf gguf = read(file.path());
      const auto decoder = decoder_of(gguf);
      const std::vector<Token> tokens = random_tokens(*decoder, 40);
      const std::vector<double> expected = logits_in_f64(gguf, decoder->shape(), tokens);
      expect_near(logits_of_whole(*decoder, tokens), expected, tolerance_for(expected));
    }
  }
}

TEST(Decoder, GivesTheSameBitsHoweverATextIsCutCachedOrThreaded) {
  const TemporaryFile file(small_model({.type = GgufType::q4_1}).finish());
  const Gguf gguf = read(file.path());
  const auto pool = make_thread_pool(3, 0);
  const auto alone = decoder_of(gguf), threaded = decoder_of(gguf, *pool);
  const std::vector<Token> tokens = random_tokens(*alone, 50);
  const std::vector<float> expected = logits_of_whole(*alone, tokens);
  EXPECT_TRUE(same_bits(logits_of_whole(*threaded, tokens), expected));
  for (std::size_t chunk = 1; chunk <= tokens.size(); ++chunk) {
    const Decoder& decoder = chunk % 2 ? *alone : *threaded;
    EXPECT_TRUE(same_bits(logits_of(decoder, tokens, chunk, *cached(decoder)), expected)) << chunk;
  }
}

// Scalar and SSE4 have bits of their own (docs/models.md).
TEST(Decoder, IsRightOnEveryTargetAndTheSameOnAvx2AndAvx512) {
  const TemporaryFile file(small_model({.type = GgufType::q8_0}).finish());
  const Gguf gguf = read(file.path());
  const auto decoder = decoder_of(gguf);
  const std::vector<Token> tokens = random_tokens(*decoder, 20);
  const std::vector<double> expected = logits_in_f64(gguf, decoder->shape(), tokens);
  const Isa best = current_isa();
  for (const Isa isa : available_isas()) {
    ASSERT_TRUE(force_isa(isa).ok());
    expect_near(logits_of_whole(*decoder, tokens), expected, tolerance_for(expected));
  }
  ASSERT_TRUE(force_isa(best).ok());
  if (best != Isa::avx512) return;
  const std::vector<float> widest = logits_of_whole(*decoder, tokens);
  ASSERT_TRUE(force_isa(Isa::avx2).ok());
  EXPECT_TRUE(same_bits(logits_of_whole(*decoder, tokens), widest));
  ASSERT_TRUE(force_isa(best).ok());
}

TEST(Decoder, TurnsPairsAsItsFactsSay) {
  std::vector<std::vector<float>> all;
  for (int which = 0; which < 5; ++which) {
    GgufWriter model = small_model({});
    if (which == 1) model.fact("llama.rope.dimension_count", std::uint32_t{16});
    if (which == 2) model.fact("llama.rope.scaling.factor", 4.0F);
    if (which == 3) model.fact("llama.rope.freq_base", 500.0F);
    if (which == 4) {
      std::string divisors;
      for (int i = 0; i < 16; ++i) {
        const float divisor = 1 + static_cast<float>(i) / 4;
        divisors.append(reinterpret_cast<const char*>(&divisor), sizeof divisor);
      }
      model.tensor("rope_freqs.weight", {16}, GgufType::f32, divisors);
    }
    const TemporaryFile file(model.finish());
    const Gguf gguf = read(file.path());
    const auto decoder = decoder_of(gguf);
    const std::vector<Token> tokens = random_tokens(*decoder, 30);
    const std::vector<double> expected = logits_in_f64(gguf, decoder->shape(), tokens);
    all.push_back(logits_of_whole(*decoder, tokens));
    expect_near(all.back(), expected, tolerance_for(expected));
    for (int before = 0; before < which; ++before)
      EXPECT_NE(all[static_cast<std::size_t>(before)], all.back()) << before;
  }
}

// Fails in the last layer, once.
class Fails final : public LayerAttention {
 public:
  explicit Fails(CachedText& text) : text_(text) {}
  std::int64_t length() const override { return text_.length(); }
  void take_back(std::int64_t position) override { text_.take_back(position); }
  Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                const OutputView& out) override {
    if (layer == 2 && fails) return Status::error("it fails");
    return text_.attend(layer, q, k, v, out);
  }
  bool fails = true;

 private:
  CachedText& text_;
};

TEST(Decoder, LeavesACacheAsItWasWhereARunFails) {
  const TemporaryFile file(small_model({}).finish());
  const auto decoder = decoder_of(read(file.path()));
  const std::vector<Token> tokens = random_tokens(*decoder, 20);
  const auto text = cached(*decoder);
  Fails attention(*text);
  std::vector<float> rows;
  EXPECT_EQ(decoder->run(tokens, attention, &rows).message(), "it fails");
  EXPECT_EQ(text->length(), 0);
  attention.fails = false;
  EXPECT_TRUE(same_bits(logits_of(*decoder, tokens, 7, attention), logits_of_whole(*decoder, tokens)));
}

TEST(Decoder, RefusesWhatItDoesNotKnow) {
  const auto message = [](const GgufWriter& model) {
    const TemporaryFile file(model.finish());
    Gguf gguf;
    EXPECT_EQ(formats::read_gguf(file.path(), &gguf).message(), "");
    std::unique_ptr<Decoder> decoder;
    return Decoder::load(std::move(gguf), inline_executor(), &decoder).message();
  };
  const auto expect_refused = [&](const GgufWriter& model, const std::string& piece) {
    EXPECT_NE(message(model).find(piece), std::string::npos) << message(model);
  };
  GgufWriter model = small_model({});
  model.drop_tensor("blk.2.ffn_up.weight");
  expect_refused(model, "the tensor blk.2.ffn_up.weight is missing");
  model = small_model({});
  model.tensor("blk.0.attn_q.bias", {192}, GgufType::f32, std::string(192 * 4, '\0'));
  expect_refused(model, "'blk.0.attn_q.bias' is not known");
  model = small_model({});
  model.tensor("blk.0.attn_k.weight", {3, 64}, GgufType::f32, std::string(3 * 64 * 4, '\0'));
  expect_refused(model, "blk.0.attn_k.weight is [3, 64], but its facts say [64, 64]");
  model = small_model({});
  model.fact("general.architecture", std::string("mamba"));
  expect_refused(model, "architecture 'mamba' is not available");
  model = small_model({});
  model.fact("llama.expert_count", std::uint32_t{8});
  expect_refused(model, "mixtures of experts are not available");
  model = small_model({});
  model.fact("llama.rope.scaling.type", std::string("yarn"));
  expect_refused(model, "scaling.type 'yarn' is not available");
  model = small_model({});
  model.fact("llama.attention.head_count_kv", std::uint32_t{4});
  expect_refused(model, "6 query heads don't share 4 key/value heads");
  model = small_model({});
  model.fact("llama.block_count", std::uint32_t{0});
  expect_refused(model, "llama.block_count is 0");
  model = small_model({});
  model.fact("llama.rope.freq_base", -3.0F);
  expect_refused(model, "llama.rope: base");
  model = small_model({});
  model.fact("llama.rope.freq_base", std::uint32_t{500000});
  expect_refused(model, "llama.rope.freq_base has another type");
  model = small_model({});
  model.fact("llama.rope.dimension_count", std::uint32_t{5});
  expect_refused(model, "llama.rope: rotary_dim: 5");
  model = small_model({});
  model.fact("tokenizer.ggml.bos_token_id", 1.0F);
  expect_refused(model, "bos_token_id has another type");
  model = small_model({});
  model.drop_fact("llama.embedding_length");
  expect_refused(model, "llama.embedding_length is missing");
}

TEST(Decoder, RefusesTokensOutOfRange) {
  const TemporaryFile file(small_model({}).finish());
  const auto decoder = decoder_of(read(file.path()));
  WholeText whole(true);
  std::vector<float> rows;
  for (const Token token : {-1, decoder->tokenizer().size()}) {
    const std::vector<Token> tokens{1, token};
    EXPECT_NE(decoder->run(tokens, whole, &rows).message().find("token " + std::to_string(token)),
              std::string::npos);
  }
}

TEST(Sampler, TakesTheLargestOrDraws) {
  const std::vector<float> logits{0, 3, NAN, 3, -INFINITY, 1};
  EXPECT_EQ(Sampler(0, 1).choose(logits), 1);
  EXPECT_EQ(Sampler(0, 1).choose(std::vector<float>{NAN, -INFINITY}), -1);
  Sampler sampler(1, 5);
  std::vector<int> drawn(6);
  for (int i = 0; i < 20000; ++i) ++drawn[static_cast<std::size_t>(sampler.choose(logits))];
  const double whole = std::exp(-3) + 2 + std::exp(-2);
  EXPECT_NEAR(drawn[0] / 20000.0, std::exp(-3) / whole, 0.01);
  EXPECT_NEAR(drawn[1] / 20000.0, 1 / whole, 0.015);
  EXPECT_NEAR(drawn[3] / 20000.0, 1 / whole, 0.015);
  EXPECT_EQ(drawn[2] + drawn[4], 0);
  EXPECT_EQ(Sampler(1, 3).choose(std::vector<float>{1, INFINITY, 5}), 1);
}

class Story : public testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = ATTN_SHARED "/models";
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there: skipped";
    gguf_ = read(folder + "/stories260K.gguf");
    std::ifstream file(folder + "/stories260K.expected.txt");
    expected_ = {std::istreambuf_iterator<char>(file), {}};
    while (expected_.ends_with('\n')) expected_.pop_back();
  }

  // 200 tokens after the begin token; after each, what it is was fed in chunks.
  std::string told(const Decoder& decoder, LayerAttention& attention, std::vector<Token>* tokens) const {
    *tokens = {*decoder.tokenizer().begin()};
    std::vector<float> rows, logits(static_cast<std::size_t>(decoder.shape().vocabulary));
    for (std::size_t n = 0; n < 200; ++n) {
      EXPECT_EQ(decoder.run({&tokens->back(), 1}, attention, &rows).message(), "");
      EXPECT_EQ(decoder.logits(rows.data(), 1, logits.data()).message(), "");
      tokens->push_back(Sampler(0, 0).choose(logits));
    }
    return decoder.tokenizer().decode(*tokens);
  }

  Gguf gguf_;
  std::string expected_;
};

TEST_F(Story, IsToldToTheLetterThroughEveryCache) {
  const auto pool = make_thread_pool(2, 0);
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16}) {
    for (Executor* executor : {&inline_executor(), pool.get()}) {
      const auto decoder = decoder_of(gguf_, *executor);
      std::vector<Token> tokens;
      EXPECT_EQ(told(*decoder, *cached(*decoder, type), &tokens), expected_) << name_of(type);
    }
  }
}

TEST_F(Story, IsToldWhateverTheChunks) {
  const auto decoder = decoder_of(gguf_);
  std::vector<Token> tokens;
  told(*decoder, *cached(*decoder), &tokens);
  tokens.pop_back();
  const std::vector<float> whole = logits_of_whole(*decoder, tokens);
  for (std::size_t chunk = 1; chunk <= tokens.size(); ++chunk)
    ASSERT_TRUE(same_bits(logits_of(*decoder, tokens, chunk, *cached(*decoder)), whole)) << chunk;
  // 16-bit caches: what each chunk size says next, at every position.
  for (const CacheType type : {CacheType::bf16, CacheType::f16}) {
    const std::vector<float> once = logits_of(*decoder, tokens, tokens.size(), *cached(*decoder, type));
    for (const std::size_t chunk : {1U, 7U, 64U})
      ASSERT_TRUE(same_bits(logits_of(*decoder, tokens, chunk, *cached(*decoder, type)), once)) << chunk;
  }
}

TEST_F(Story, HasTheLogitsOfAFloat64Pass) {
  const auto decoder = decoder_of(gguf_);
  std::vector<Token> tokens;
  told(*decoder, *cached(*decoder), &tokens);
  tokens.pop_back();
  expect_near(logits_of_whole(*decoder, tokens), logits_in_f64(gguf_, decoder->shape(), tokens), 1e-4);
}

}  // namespace
}  // namespace attn::model

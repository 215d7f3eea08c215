// What a type of KV cache does to a language model: its next-token probabilities beside those through an f32 cache.
//   cache_accuracy MODEL.gguf TEXT-FILE
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "attn/executor.h"
#include "model/decoder.h"

namespace attn::model {
namespace {

// Logits of the text's tokens, [tokens][vocabulary], through a cache.
Status logits_through(const Decoder& decoder, std::span<const Token> tokens, CacheType type,
                      std::vector<float>* logits, std::int64_t* bytes) {
  std::unique_ptr<CachedText> text;
  std::vector<float> rows;
  ATTN_RETURN_IF_ERROR(CachedText::create(decoder.layers(), decoder.cache_options(type), &text));
  logits->resize(tokens.size() * static_cast<std::size_t>(decoder.shape().vocabulary));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ATTN_RETURN_IF_ERROR(decoder.run(tokens.subspan(i, 1), *text, &rows));
    ATTN_RETURN_IF_ERROR(
        decoder.logits(rows.data(), 1, logits->data() + i * static_cast<std::size_t>(decoder.shape().vocabulary)));
  }
  *bytes = text->bytes();
  return {};
}

std::vector<double> probabilities(std::span<const float> logits) {
  double most = -INFINITY, sum = 0;
  for (const float logit : logits) most = std::max<double>(most, logit);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(std::exp(logit - most));
  for (const double p : result) sum += p;
  for (double& p : result) p /= sum;
  return result;
}

std::size_t likeliest(const std::vector<double>& p) {
  return static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
}

void compare(CacheType type, std::span<const Token> tokens, std::span<const float> exact,
             std::span<const float> logits, std::int64_t bytes) {
  const std::size_t vocabulary = logits.size() / tokens.size();
  double surprise = 0, divergence = 0, worst = 0;
  std::size_t same = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const auto ours = logits.subspan(i * vocabulary, vocabulary),
               theirs = exact.subspan(i * vocabulary, vocabulary);
    const std::vector<double> q = probabilities(ours), p = probabilities(theirs);
    surprise -= std::log(q[static_cast<std::size_t>(tokens[i + 1])]);
    for (std::size_t t = 0; t < vocabulary; ++t) {
      if (p[t] > 0) divergence += p[t] * std::log(p[t] / q[t]);
      worst = std::max<double>(worst, std::abs(ours[t] - theirs[t]));
    }
    same += likeliest(p) == likeliest(q);
  }
  const double n = static_cast<double>(tokens.size() - 1);
  std::printf("| %s | %.0f | %.4f | %.1e | %.1e | %.1f %% |\n", name_of(type),
              static_cast<double>(bytes) / static_cast<double>(tokens.size()), std::exp(surprise / n),
              divergence / n, worst, 100 * static_cast<double>(same) / n);
}

Status run(const std::string& model, const std::string& text_path) {
  std::ifstream file(text_path, std::ios::binary);
  if (!file) return Status::error(text_path + ": can't be read; give a text file");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  formats::Gguf gguf;
  std::unique_ptr<Decoder> decoder;
  ATTN_RETURN_IF_ERROR(formats::read_gguf(model, &gguf));
  ATTN_RETURN_IF_ERROR(Decoder::load(std::move(gguf), default_executor(), &decoder));
  std::vector<Token> tokens = decoder->tokenizer().encode(text);
  tokens.resize(std::min<std::size_t>(tokens.size(), static_cast<std::size_t>(decoder->context())));
  if (tokens.size() < 2) return Status::error(text_path + ": too short; give a text of some hundred words");
  std::printf(
      "%zu tokens\n\n| cache | bytes a token | perplexity | KL divergence from f32 | largest logit difference | "
      "same "
      "likeliest token |\n|---|---|---|---|---|---|\n",
      tokens.size());
  std::vector<float> exact, logits;
  for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::bf16, CacheType::q8}) {
    std::int64_t bytes = 0;
    ATTN_RETURN_IF_ERROR(logits_through(*decoder, tokens, type, &logits, &bytes));
    if (type == CacheType::f32) exact = logits;
    compare(type, tokens, exact, logits, bytes);
  }
  return {};
}

}  // namespace
}  // namespace attn::model

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("cache_accuracy MODEL.gguf TEXT-FILE\n", stderr);
    return 2;
  }
  const attn::Status status = attn::model::run(argv[1], argv[2]);
  if (!status.ok()) std::fprintf(stderr, "cache_accuracy: %s\n", status.message().c_str());
  return status.ok() ? 0 : 2;
}

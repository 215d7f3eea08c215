// attn generate: text through the KV cache.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/executor.h"
#include "cli/attention_flags.h"
#include "cli/models.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "explain/json_number.h"
#include "model/decoder.h"
#include "model/sampler.h"

namespace attn::cli {
namespace {

using explain::json_number;

using model::Token;

constexpr const char* kFooter = R"(
Without a prompt the text starts from the model's begin token. Text goes to stdout, figures to stderr. The text of
a control token, such as <|im_start|>, stands for that token.

Example:
  attn generate --model smollm2 "The three primary colours are" -n 24)";

// As typed; an empty text means that the flag was not given.
struct GenerateFlags {
  std::string model, prompt, count, temperature, seed, cache_type, chunk, threads;
  bool no_cache = false;
  bool as_json = false;
};

// Tokens that go through the layers together in a prompt, where nothing is said: enough that weights are read rarely.
constexpr std::int64_t kChunk = 512;

struct Settings {
  std::int64_t count, chunk;
  double temperature;
  std::uint64_t seed;
  CacheType type;
  bool cached;
};

Settings settings_of(const GenerateFlags& flags) {
  constexpr std::int64_t kMany = std::numeric_limits<std::int32_t>::max();
  const auto whole_or = [](const char* flag, const std::string& text, std::int64_t least, std::int64_t otherwise,
                           std::int64_t most) {
    return text.empty() ? otherwise : parse_whole(flag, text, least, most);
  };
  Settings settings{
      .count = whole_or("-n", flags.count, 0, 64, kMany),
      .chunk = whole_or("--chunk", flags.chunk, 1, kChunk, kMany),
      .temperature = flags.temperature.empty() ? 0 : parse_real("--temperature", flags.temperature),
      .seed = static_cast<std::uint64_t>(
          whole_or("--seed", flags.seed, 0, 0, std::numeric_limits<std::int64_t>::max())),
      .type = CacheType::f32,
      .cached = !flags.no_cache,
  };
  if (settings.temperature < 0)
    throw Failure{2,
                  "--temperature: " + flags.temperature + " is below 0; 0 takes the likeliest token, more draws"};
  if (!flags.seed.empty() && settings.temperature == 0)
    throw Failure{2, "--seed: nothing is drawn at temperature 0; give --temperature 0.8, or leave --seed out"};
  if (flags.no_cache && !flags.cache_type.empty())
    throw Failure{2, "--cache-type: there is no cache with --no-cache; leave one of them out"};
  if (flags.no_cache && !flags.chunk.empty())
    throw Failure{2, "--chunk: with --no-cache the whole text is computed at once; leave one of them out"};
  if (!flags.cache_type.empty()) {
    const auto type = cache_type_named(flags.cache_type);
    if (!type) throw Failure{2, "--cache-type: \"" + flags.cache_type + "\" is none; give f32, bf16, f16 or q8"};
    settings.type = *type;
  }
  return settings;
}

/// What a run left behind.
struct Generated {
  std::vector<Token> prompt, tokens;
  double prefill_seconds = 0, decode_seconds = 0;
  std::int64_t cache_bytes = 0;

  // Decoding computes one row for every token but the first, which the prompt's last row gives.
  double prefill_rate() const { return static_cast<double>(prompt.size()) / prefill_seconds; }
  double decode_rate() const {
    return tokens.size() < 2 ? 0 : static_cast<double>(tokens.size() - 1) / decode_seconds;
  }
};

// Runs from the start, but for the time that it is stopped.
class Clock {
 public:
  void stop() { before_ = seconds(); }
  void go_on() { start_ = std::chrono::steady_clock::now(); }
  double seconds() const {
    return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  double before_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Gives the row of the last token of a text that grows by `tokens`: through caches, or all of it anew each time.
class Text {
 public:
  Text(const model::Decoder& decoder, const Settings& settings) : decoder_(decoder), settings_(settings) {
    if (!settings.cached) return;
    require(model::CachedText::create(decoder.shape().layers, decoder.cache_options(settings.type), &cache_));
  }

  const std::vector<float>& add(std::span<const Token> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (cache_) {
      run(tokens, settings_.chunk, *cache_);
    } else {
      model::WholeText whole(true, &decoder_.executor());
      run(tokens_, static_cast<std::int64_t>(tokens_.size()), whole);
    }
    return rows_;
  }

  std::int64_t cache_bytes() const { return cache_ ? cache_->bytes() : 0; }

 private:
  void run(std::span<const Token> tokens, std::int64_t chunk, model::LayerAttention& attention) {
    ProgressLine progress(static_cast<std::int64_t>(tokens.size()), "prompt's tokens");
    while (!tokens.empty()) {
      const auto together = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(chunk)));
      require(decoder_.run(together, attention, &rows_));
      tokens = tokens.subspan(together.size());
      progress.count(static_cast<std::int64_t>(together.size()));
    }
    rows_.erase(rows_.begin(), rows_.end() - decoder_.shape().width);
  }

  const model::Decoder& decoder_;
  const Settings& settings_;
  std::unique_ptr<model::CachedText> cache_;
  std::vector<Token> tokens_;
  std::vector<float> rows_;
};

std::vector<Token> prompt_of(const model::Decoder& decoder, const std::string& text) {
  std::vector<Token> tokens = decoder.tokenizer().encode(text);
  if (!tokens.empty()) return tokens;
  if (decoder.tokenizer().begin()) return {*decoder.tokenizer().begin()};
  throw Failure{2, "prompt: it is empty, and this model has no begin token; give a prompt"};
}

void check_length(const model::Decoder& decoder, std::size_t prompt, std::int64_t count) {
  const std::int64_t positions = static_cast<std::int64_t>(prompt) + count;
  if (positions <= decoder.shape().context) return;
  throw Failure{2, "-n: " + std::to_string(prompt) + " tokens of prompt and " + std::to_string(count) +
                       " more are beyond the " + std::to_string(decoder.shape().context) +
                       " positions that this model was trained for; ask for fewer"};
}

// Calls said(tokens so far) after each token.
template <class Said>
Generated generate(const model::Decoder& decoder, const std::string& prompt, const Settings& settings,
                   const Said& said) {
  Generated result;
  result.prompt = prompt_of(decoder, prompt);
  check_length(decoder, result.prompt.size(), settings.count);

  Text text(decoder, settings);
  model::Sampler sampler(settings.temperature, settings.seed);
  std::vector<float> logits(static_cast<std::size_t>(decoder.shape().vocabulary));
  const Clock prefill;
  const std::vector<float>* row = &text.add(result.prompt);
  result.prefill_seconds = prefill.seconds();
  Clock decode;
  while (static_cast<std::int64_t>(result.tokens.size()) < settings.count) {
    require(decoder.logits(row->data(), 1, logits.data()));
    const Token token = sampler.choose(logits);
    if (token < 0) throw Failure{2, "model: its logits are no numbers; fetch or convert the file again"};
    result.tokens.push_back(token);
    if (token == decoder.tokenizer().end()) break;
    decode.stop();
    said(result);
    decode.go_on();
    if (static_cast<std::int64_t>(result.tokens.size()) < settings.count) row = &text.add({&token, 1});
  }
  result.decode_seconds = decode.seconds();
  result.cache_bytes = text.cache_bytes();
  return result;
}

std::string text_of(const model::Tokenizer& tokenizer, const Generated& generated) {
  std::vector<Token> all = generated.prompt;
  all.insert(all.end(), generated.tokens.begin(), generated.tokens.end());
  return tokenizer.decode(all);
}

// Prints what the text has grown by since the last time; bytes of a character that is not complete wait.
class Printer {
 public:
  void print(const std::string& text, bool complete) {
    std::size_t end = text.size();
    if (!complete) {
      while (end > printed_ && (static_cast<unsigned char>(text[end - 1]) & 0xC0U) == 0x80U) --end;
      if (end > printed_ && static_cast<unsigned char>(text[end - 1]) >= 0xC0U) --end;
    }
    std::cout << std::string_view(text).substr(printed_, end - printed_) << std::flush;
    printed_ = end;
  }

 private:
  std::size_t printed_ = 0;
};

void print_json(const model::Tokenizer& tokenizer, const Generated& generated, const std::string& cache_type) {
  const nlohmann::ordered_json json = {{"prompt_tokens", generated.prompt.size()},
                                       {"tokens", generated.tokens.size()},
                                       {"text", text_of(tokenizer, generated)},
                                       {"prefill_tokens_per_s", json_number(generated.prefill_rate())},
                                       {"decode_tokens_per_s", json_number(generated.decode_rate())},
                                       {"cache_bytes", generated.cache_bytes},
                                       {"cache_type", cache_type},
                                       {"prompt_token_ids", generated.prompt},
                                       {"token_ids", generated.tokens}};
  std::cout << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

void print_figures(const model::Decoder& decoder, const Generated& generated, bool cached) {
  const auto rate = [](double tokens_a_second) { return count_text(tokens_a_second) + " tokens/s"; };
  std::cerr << "prefill  " << counted(static_cast<std::int64_t>(generated.prompt.size()), "token") << " in "
            << duration_text(generated.prefill_seconds) << ", " << rate(generated.prefill_rate()) << '\n';
  if (generated.tokens.size() > 1) {
    std::cerr << "decode   " << counted(static_cast<std::int64_t>(generated.tokens.size()), "token") << " in "
              << duration_text(generated.decode_seconds) << ", " << rate(generated.decode_rate()) << '\n';
  }
  std::cerr << "cache    "
            << (cached ? bytes_text(static_cast<double>(generated.cache_bytes)) : "none: all is computed anew")
            << "\nweights  " << bytes_text(static_cast<double>(decoder.weight_bytes())) << '\n';
}

void run_generate(const GenerateFlags& flags) {
  const Settings settings = settings_of(flags);
  const std::unique_ptr<Executor> pool = pool_of(flags.threads);
  const std::string path = model_path(flags.model);
  if (std::filesystem::is_directory(path))
    throw Failure{2,
                  "--model: " + path + " is a folder, as encoders are, and those write no text; give a .gguf file"};
  formats::Gguf gguf;
  require(formats::read_gguf(path, &gguf));
  std::unique_ptr<model::Decoder> decoder;
  require(model::Decoder::load(std::move(gguf), pool ? *pool : default_executor(), &decoder));

  const model::Tokenizer& tokenizer = decoder->tokenizer();
  const bool streams = !flags.as_json && isatty(STDOUT_FILENO) != 0;
  Printer printer;
  const Generated generated = generate(*decoder, flags.prompt, settings, [&](const Generated& so_far) {
    if (streams) printer.print(text_of(tokenizer, so_far), false);
  });
  const std::string type = flags.no_cache ? "none" : flags.cache_type.empty() ? "f32" : flags.cache_type;
  if (flags.as_json) return print_json(tokenizer, generated, type);
  printer.print(text_of(tokenizer, generated) + "\n", true);
  print_figures(*decoder, generated, !flags.no_cache);
}

}  // namespace

void add_generate(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("generate", "Text from a model, through the KV cache");
  const auto flags = std::make_shared<GenerateFlags>();
  verb->add_option("prompt", flags->prompt, "What the text begins with")->type_name("TEXT");
  verb->add_option("--model", flags->model, "A .gguf file, or smollm2")->type_name("MODEL");
  verb->add_option("-n", flags->count, "Tokens to write, at most [64]")->type_name("N");
  verb->add_option("--temperature", flags->temperature, "0: the likeliest token; above: drawn [0]")->type_name("T");
  verb->add_option("--seed", flags->seed, "Of what is drawn [0]")->type_name("S");
  verb->add_flag("--no-cache", flags->no_cache, "Compute everything anew for each token: same bits, same text");
  verb->add_option("--cache-type", flags->cache_type, "f32, bf16, f16 or q8 [f32]")->type_name("TYPE");
  verb->add_option("--chunk", flags->chunk, "Tokens of the prompt that are computed together [512]")
      ->type_name("N");
  verb->add_option("--threads", flags->threads, "Threads that may take part")->type_name("N");
  verb->add_flag("--json", flags->as_json, "Print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { run_generate(*flags); });
}

}  // namespace attn::cli

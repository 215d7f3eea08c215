// attn cost: what attention over n tokens takes, before anyone runs it.
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attn/executor.h"
#include "attn/kv_cache.h"
#include "attn/machine.h"
#include "cli/attention_flags.h"
#include "cli/numbers.h"
#include "cli/verbs.h"
#include "explain/cost.h"
#include "explain/json_number.h"

namespace attn::cli {
namespace {

using explain::Cost;
using explain::json_number;

constexpr const char* kFooter = R"(
Without --heads and --layers the numbers are those of one head of one layer.

Example:
  attn cost -n 100000 --heads 32 --kv-heads 8 --head-dim 128 --layers 32)";

// As typed; an empty text means that the flag was not given.
struct CostFlags {
  std::string tokens, batch, heads, kv_heads, head_dim, layers, cache_type, threads;
  bool causal = false;
  bool as_json = false;
};

std::int64_t size_or(const char* flag, const std::string& text, std::int64_t otherwise) {
  return text.empty() ? otherwise : parse_whole(flag, text, 1, std::numeric_limits<std::int64_t>::max());
}

CacheType cache_type_of(const std::string& name) {
  if (name.empty()) return CacheType::f32;
  if (const auto type = cache_type_named(name)) return *type;
  throw Failure{2, "--cache-type: \"" + name + "\" is none; give f32, bf16, f16 or q8"};
}

// As a cache of ours lays them out, padding included: on average over a key and a value.
double cache_element_bytes(const std::string& name, std::int64_t head_dim) {
  const KvCacheOptions options{.kv_heads = 1, .key_dim = head_dim, .type = cache_type_of(name), .page_tokens = 16};
  std::unique_ptr<KvCache> cache;
  if (!KvCache::create(options, &cache).ok()) {  // larger than any cache: what numbers alone would take
    return options.type == CacheType::f32 ? 4 : options.type == CacheType::q8 ? 1 + 2.0 / kScaleGroup : 2;
  }
  return static_cast<double>(cache->usage().page_bytes) / static_cast<double>(options.page_tokens) /
         (2 * static_cast<double>(head_dim));
}

explain::CostSizes read_sizes(const CostFlags& flags) {
  if (flags.tokens.empty()) throw Failure{2, "-n: not given; say how many tokens, as in -n 100000"};
  const std::int64_t heads = size_or("--heads", flags.heads, 1);
  const std::int64_t kv_heads = size_or("--kv-heads", flags.kv_heads, heads);
  if (heads % kv_heads != 0) {
    throw Failure{2, std::string("--heads: ") + std::to_string(heads) + " is no multiple of " +
                         counted(kv_heads, "key/value head") + "; each of them serves equally many query heads"};
  }
  return {.tokens = static_cast<double>(size_or("-n", flags.tokens, 1)),
          .batch = static_cast<double>(size_or("--batch", flags.batch, 1)),
          .heads = static_cast<double>(heads),
          .kv_heads = static_cast<double>(kv_heads),
          .head_dim = static_cast<double>(size_or("--head-dim", flags.head_dim, 128)),
          .layers = static_cast<double>(size_or("--layers", flags.layers, 1)),
          .cache_element_bytes = cache_element_bytes(flags.cache_type, size_or("--head-dim", flags.head_dim, 128)),
          .causal = flags.causal};
}

int threads_of(const CostFlags& flags) {
  if (flags.threads.empty()) return default_executor().threads();
  return static_cast<int>(parse_whole("--threads", flags.threads, 1, kMostThreads));
}

// The peak of this machine; where it can't be measured, the reason.
struct Peak {
  std::optional<Machine> machine;
  std::string reason;
};

Peak measure_peak(int threads) {
  Machine machine;
  const Status status = measure_machine(threads, DType::f32, &machine);
  return status.ok() ? Peak{machine, ""} : Peak{std::nullopt, status.message()};
}

double seconds_at_peak(const Cost& cost, const Machine& machine) { return cost.flops / (machine.fma_gflops * 1e9); }

// One more token reads the whole cache, and does so little with it that reading is what takes time.
double seconds_a_token(const Cost& cost, const Machine& machine) {
  return cost.kv_cache_bytes / (machine.read_gbps * 1e9);
}

void print_json(const explain::CostSizes& sizes, const Cost& cost, const Peak& peak) {
  nlohmann::ordered_json object = {{"scores", json_number(cost.scores)},
                                   {"flops", json_number(cost.flops)},
                                   {"table_bytes", json_number(cost.table_bytes)},
                                   {"kv_cache_bytes", json_number(cost.kv_cache_bytes)},
                                   {"causal", sizes.causal}};
  if (peak.machine) {
    object["predicted_seconds"] = json_number(seconds_at_peak(cost, *peak.machine));
    object["predicted_seconds_per_token"] = json_number(seconds_a_token(cost, *peak.machine));
    object["peak_gflops"] = json_number(peak.machine->fma_gflops);
    object["read_gbps"] = json_number(peak.machine->read_gbps);
    object["threads"] = peak.machine->threads;
  } else {
    object["predicted_seconds"] = nullptr;
    object["not_predicted_because"] = peak.reason;
  }
  std::cout << object.dump() << '\n';
}

void print_sizes(const explain::CostSizes& sizes) {
  std::cout << "n " << count_text(sizes.tokens) << ", heads " << count_text(sizes.heads) << ", key/value heads "
            << count_text(sizes.kv_heads) << ", D " << count_text(sizes.head_dim) << ", layers "
            << count_text(sizes.layers) << ", batch " << count_text(sizes.batch)
            << (sizes.causal ? "; causal" : "; every token sees every token") << "\n\n";
}

void print_amounts(const explain::CostSizes& sizes, const Cost& cost) {
  std::cout << "scores      " << count_text(cost.scores) << '\n'
            << "            = " << (sizes.causal ? "n·(n + 1)/2" : "n²") << " · heads · layers · batch\n"
            << "operations  " << count_text(cost.flops) << '\n'
            << "            = 4·D a score: q·k and weight·v, a multiply and an add each\n"
            << "table       " << bytes_text(cost.table_bytes) << '\n'
            << "            = 4·n² bytes a head, layer and sequence: the scores in f32, never stored here\n"
            << "KV cache    " << bytes_text(cost.kv_cache_bytes) << '\n'
            << "            = 2·n·D·" << sizes.cache_element_bytes
            << " bytes a key/value head, layer and sequence: keys and values\n";
}

void print_time(const Cost& cost, const Peak& peak) {
  if (!peak.machine) {
    std::cout << "time        not predicted: " << peak.reason << '\n';
    return;
  }
  std::cout << "time        " << duration_text(seconds_at_peak(cost, *peak.machine))
            << " for all tokens at once, at the best\n"
            << "            = operations / " << count_text(peak.machine->fma_gflops)
            << " billion a second, this machine's measured peak with " << counted(peak.machine->threads, "thread")
            << '\n'
            << "            " << duration_text(seconds_a_token(cost, *peak.machine))
            << " for one more token, at the best\n"
            << "            = KV cache / " << count_text(peak.machine->read_gbps)
            << " GB a second, its measured read bandwidth\n";
}

void print_cost(const CostFlags& flags) {
  const explain::CostSizes sizes = read_sizes(flags);
  const Cost cost = cost_of(sizes);
  const Peak peak = measure_peak(threads_of(flags));
  if (flags.as_json) return print_json(sizes, cost, peak);
  print_sizes(sizes);
  print_amounts(sizes, cost);
  print_time(cost, peak);
}

}  // namespace

void add_cost(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("cost", "What attention over n tokens takes: operations, bytes, time");
  const auto flags = std::make_shared<CostFlags>();
  const auto size = [verb](const char* name, std::string& text, const char* description) {
    verb->add_option(name, text, description)->type_name("N");
  };
  size("-n", flags->tokens, "Tokens: queries and keys alike");
  size("--heads", flags->heads, "Query heads a layer; default 1");
  size("--kv-heads", flags->kv_heads, "Key/value heads a layer; default as many as --heads");
  size("--head-dim", flags->head_dim, "D; default 128");
  size("--layers", flags->layers, "Layers; default 1");
  size("--batch", flags->batch, "Sequences; default 1");
  verb->add_flag("--causal", flags->causal, "A token sees itself and those before it");
  verb->add_option("--cache-type", flags->cache_type,
                   "f32 (default), bf16, f16 or q8: how the KV cache would be kept")
      ->type_name("TYPE");
  size("--threads", flags->threads, "Threads whose peak is measured; default: one a processor");
  verb->add_flag("--json", flags->as_json, "Print one JSON object instead of text");
  verb->footer(kFooter);
  verb->callback([flags] { print_cost(*flags); });
}

}  // namespace attn::cli

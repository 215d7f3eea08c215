// The flags that every attending verb shares: masks, positions, scale, threads.
#include "cli/attention_flags.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/numbers.h"
#include "cli/verbs.h"
#include "formats/tensor.h"

namespace attn::cli {
namespace {

constexpr std::string_view kPlain = "true";  // what the parser makes of a --causal without a value
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostHeadsWithSlopes = 1 << 20;

void set_alignment(std::string_view flag, const std::string& text, AttentionOptions* options) {
  if (text == "top-left") {
    options->alignment = Alignment::top_left;
  } else if (text == "bottom-right") {
    options->alignment = Alignment::bottom_right;
  } else if (!text.empty() && text.find_first_not_of("+-0123456789") == std::string::npos) {
    options->alignment = Alignment::offset;
    options->position_offset = parse_whole(flag, text, -kLargest, kLargest);
  } else {
    throw Failure{2, std::string(flag) + ": \"" + text +
                         "\" is no alignment; give top-left (the first query sits at " +
                         "the first key), bottom-right (the last at the last) or a whole number"};
  }
}

void set_positions(const AttentionFlags& flags, AttentionOptions* options) {
  options->causal = !flags.causal.empty();
  const bool says_where = options->causal && flags.causal != kPlain;
  if (says_where && !flags.align.empty()) {
    throw Failure{2, "--align: \"" + flags.align + "\", but --causal=" + flags.causal + " says already where " +
                         "queries sit; give one of the two"};
  }
  if (says_where) set_alignment("--causal", flags.causal, options);
  if (!flags.align.empty()) set_alignment("--align", flags.align, options);
}

std::optional<std::int64_t> window_side(std::string_view text) {
  if (text == "inf") return std::nullopt;
  if (text.starts_with('-')) {
    throw Failure{2,
                  "--window: \"" + std::string(text) + "\" is no reach; give 0 or more keys, or inf for no bound"};
  }
  return parse_whole("--window", text, 0, kLargest);
}

void set_window(const std::string& text, AttentionOptions* options) {
  const std::size_t comma = text.find(',');
  options->window_left = window_side(text.substr(0, comma));
  if (comma != std::string::npos) options->window_right = window_side(text.substr(comma + 1));
}

// A boolean tensor hides keys; any other is added to the scores.
void read_mask(const std::string& argument, DType compute, AttentionSetup* setup) {
  setup->mask = read_input("--mask", argument);
  setup->files.push_back(setup->mask->file);
  if (setup->mask->view.dtype == DType::boolean) {
    setup->options.mask = setup->mask->view;
    return;
  }
  if (setup->mask->view.dtype == DType::f64 || compute == DType::f64)
    *setup->mask = converted(*setup->mask, compute);
  setup->options.bias = setup->mask->view;
}

void read_sinks(const std::string& argument, std::int64_t query_heads, DType compute, AttentionSetup* setup) {
  const Input sinks = read_input("--sinks", argument);
  if (!is_float(sinks.view.dtype)) {
    throw Failure{2, "--sinks: " + argument + " holds bool; give one floating-point logit a query head"};
  }
  if (sinks.view.rank != 1 || sinks.view.shape[0] != query_heads) {
    throw Failure{2, "--sinks: " + argument + " has the shape " +
                         formats::shape_text({sinks.view.shape.data(), static_cast<std::size_t>(sinks.view.rank)}) +
                         ", but q has " + counted(query_heads, "head") + "; give one logit a head, [" +
                         std::to_string(query_heads) + "]"};
  }
  setup->files.push_back(sinks.file);
  setup->sinks = converted(sinks, compute);
  setup->options.sinks = setup->sinks->view;
}

void make_slopes(std::int64_t query_heads, DType compute, AttentionSetup* setup) {
  if (query_heads > kMostHeadsWithSlopes) {
    throw Failure{2, "--alibi: q has " + std::to_string(query_heads) + " heads; slopes are given for at most " +
                         std::to_string(kMostHeadsWithSlopes)};
  }
  const auto slopes = std::make_shared<std::vector<float>>(alibi_slopes(static_cast<int>(query_heads)));
  setup->alibi = converted(Input{TensorView(slopes->data(), DType::f32, {query_heads}), "", slopes}, compute);
  setup->options.alibi = setup->alibi->view;
}

void set_lengths(const std::string& text, std::int64_t batch, AttentionSetup* setup) {
  setup->key_lengths = parse_whole_list("--lengths", text);
  const auto count = static_cast<std::int64_t>(setup->key_lengths.size());
  if (count != batch) {
    throw Failure{2, "--lengths: " + std::to_string(count) + " given for " + counted(batch, "sequence") +
                         "; give one number of valid keys for each"};
  }
  setup->options.key_lengths = setup->key_lengths;
}

// A flag that would change nothing is a slip: of another flag that was meant to be there.
void check_effects(const AttentionFlags& flags) {
  if (!flags.sink_tokens.empty() && flags.window.empty()) {
    throw Failure{2, "--sink-tokens: " + flags.sink_tokens +
                         " given without a window, in which every key stays visible anyway; add --window LEFT or " +
                         "leave it out"};
  }
  if (!flags.align.empty() && flags.causal.empty() && flags.window.empty() && !flags.alibi) {
    throw Failure{2, "--align: " + flags.align + " given, but nothing asks where queries sit; add --causal, " +
                         "--window or --alibi, or leave it out"};
  }
}

// Peers disagree about where queries sit then, so that nothing is taken for granted.
[[noreturn]] void refuse_positions(const AttentionOptions& options, std::int64_t queries, std::int64_t keys,
                                   const std::string& where) {
  const std::string flag = options.causal ? "--causal" : options.alibi ? "--alibi" : "--window";
  const std::string how = options.causal ? "--causal=" : "--align ";
  throw Failure{2, flag + ": " + (queries == 1 ? "1 query" : std::to_string(queries) + " queries") + " and " +
                       counted(keys, "key") + where + "; where they differ, write " + how +
                       "bottom-right (the last query at the last key, as with a KV cache) or " + how +
                       "top-left (the first query at the first key)"};
}

}  // namespace

void AttentionFlags::add_to(CLI::App& verb) {
  const auto option = [&verb](const char* name, std::string& text, const char* type, const char* description) {
    verb.add_option(name, text, description)->type_name(type)->group("Attention");
  };
  verb.add_flag("--causal", causal,
                "Query i sees keys up to its own position; where N and M differ, as --causal=WHERE:\n"
                "top-left, bottom-right (a KV cache) or an offset")
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->group("Attention");
  option("--align", align, "WHERE", "Where queries sit for --window and --alibi without --causal: the same words");
  option("--scale", scale, "S", "Multiplies q·k; default 1/sqrt(D)");
  option("--mask", mask, "FILE[:NAME]", "bool (true = may attend), or float, added to the scores");
  option("--window", window, "LEFT[,RIGHT]", "Only keys so far from a query; inf, or no RIGHT: unbounded");
  option("--sink-tokens", sink_tokens, "S", "The first S keys stay visible whatever the window says");
  option("--sinks", sinks, "FILE[:NAME]", "[H]: a logit a head that joins the softmax and has no value");
  option("--softcap", softcap, "C", "A score becomes C·tanh(score/C); C > 0");
  verb.add_flag("--alibi", alibi, "Standard ALiBi slopes")->group("Attention");
  option("--lengths", lengths, "L1,L2,...", "Valid keys of each sequence");
  option("--threads", threads, "N", "Default: one a processor, or ATTN_THREADS");
}

std::optional<CacheType> cache_type_named(std::string_view name) {
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::f16, CacheType::q8}) {
    if (name == name_of(type)) return type;
  }
  return std::nullopt;
}

AttentionSetup set_up(const AttentionFlags& flags, std::int64_t batch, std::int64_t query_heads, DType compute) {
  check_effects(flags);
  AttentionSetup setup;
  AttentionOptions& options = setup.options;
  set_positions(flags, &options);
  if (!flags.scale.empty()) options.scale = parse_real("--scale", flags.scale);
  if (!flags.softcap.empty()) {
    options.softcap = parse_real("--softcap", flags.softcap);
    if (*options.softcap <= 0)
      throw Failure{2, "--softcap: " + flags.softcap + " is not above 0; leave it out for none"};
  }
  if (!flags.window.empty()) set_window(flags.window, &options);
  if (!flags.sink_tokens.empty()) {
    options.sink_tokens = parse_whole("--sink-tokens", flags.sink_tokens, 0, kLargest);
  }
  if (!flags.mask.empty()) read_mask(flags.mask, compute, &setup);
  if (!flags.sinks.empty()) read_sinks(flags.sinks, query_heads, compute, &setup);
  if (flags.alibi) make_slopes(query_heads, compute, &setup);
  if (!flags.lengths.empty()) set_lengths(flags.lengths, batch, &setup);
  setup.pool = pool_of(flags.threads);
  options.executor = setup.pool ? setup.pool.get() : &default_executor();
  return setup;
}

std::unique_ptr<Executor> pool_of(const std::string& threads) {
  if (threads.empty()) return nullptr;
  return make_thread_pool(static_cast<int>(parse_whole("--threads", threads, 1, kMostThreads)));
}

void check_sequences(const AttentionOptions& options, std::int64_t queries, std::int64_t keys) {
  const auto& lengths = options.key_lengths;
  for (const std::int64_t length : lengths) {
    if (length <= keys) continue;
    throw Failure{2, "--lengths: " + std::to_string(length) + ", but k has " + counted(keys, "key") +
                         "; a length is from 0 to " + std::to_string(keys)};
  }
  const bool needs_positions = options.causal || options.alibi || options.window_left || options.window_right;
  if (options.alignment != Alignment::equal_lengths || !needs_positions) return;
  for (std::size_t sequence = 0; sequence < std::max<std::size_t>(lengths.size(), 1); ++sequence) {
    const std::int64_t seen = lengths.empty() ? keys : lengths[sequence];
    if (seen == queries) continue;
    const std::string where = lengths.empty() ? "" : " in sequence " + std::to_string(sequence) + " (--lengths)";
    refuse_positions(options, queries, seen, where);
  }
}

}  // namespace attn::cli

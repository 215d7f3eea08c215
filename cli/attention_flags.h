// The flags that every attending verb shares: masks, positions, scale, threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/executor.h"
#include "attn/options.h"
#include "cli/inputs.h"

namespace CLI {
class App;
}

namespace attn::cli {

/// More threads than this are a slip of the finger.
inline constexpr std::int64_t kMostThreads = 1024;

/// What was typed, not yet looked at. An empty text means that the flag was not given.
struct AttentionFlags {
  std::string causal;
  std::string align;
  std::string scale;
  std::string mask;
  std::string window;
  std::string sink_tokens;
  std::string sinks;
  std::string softcap;
  std::string lengths;
  std::string threads;
  bool alibi = false;

  /// Adds the flags to a verb. This object must outlive the verb's parsing.
  void add_to(CLI::App& verb);
};

/// Options together with everything that they point to. It can be moved, not copied.
struct AttentionSetup {
  AttentionOptions options;
  std::vector<std::int64_t> key_lengths;
  std::optional<Input> mask, sinks, alibi;
  std::unique_ptr<Executor> pool;
  std::vector<std::string> files;  ///< what was read, so that no output replaces it

  AttentionSetup() = default;
  AttentionSetup(AttentionSetup&&) = default;
  AttentionSetup& operator=(AttentionSetup&&) = default;
};

/// The pool that --threads asks for; null where it was not given. Throws Failure{2} that names the flag.
std::unique_ptr<Executor> pool_of(const std::string& threads);

/// "f32", "bf16", "f16" or "q8"; nothing for other names.
std::optional<CacheType> cache_type_named(std::string_view name);

/// Turns the flags into options for `batch` sequences of `query_heads` heads that are computed in f32 or f64: reads
/// the files that they name and makes the thread pool. Throws Failure{2} that names the flag.
AttentionSetup set_up(const AttentionFlags& flags, std::int64_t batch, std::int64_t query_heads, DType compute);

/// Throws Failure{2} where a length is beyond the keys, or where numbers of queries and keys differ, flags depend on
/// where queries sit, and nothing says where. The sentence names the flag to write.
void check_sequences(const AttentionOptions& options, std::int64_t queries, std::int64_t keys);

}  // namespace attn::cli

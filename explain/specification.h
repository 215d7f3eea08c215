// A small problem as a user writes it down: one JSON object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "attn/status.h"
#include "reference/trace.h"

namespace attn::explain {

/// More than this nobody reads, and the tables grow with the square.
inline constexpr std::size_t kMostTokens = 64;
inline constexpr std::size_t kMostColumns = 256;
inline constexpr std::int64_t kMostHeads = 256;
inline constexpr std::size_t kMostSpecificationBytes = std::size_t{1} << 20;

/// What a specification says.
struct Specification {
  reference::Problem problem;  ///< tokens and matrices; its options are not set
  /// Options by their flag's name without dashes, worded as on the command line: {"window", "2,0"}. A plain `true`
  /// is "true"; options that are `false` are left out.
  std::map<std::string, std::string> options;
};

/// The worked example that comes with the program, as a specification.
Specification worked_specification();

/// Reads {"tokens": […], "x": [[…]], "wq": …, "wk": …, "wv": …} or {"q": …, "k": …, "v": …}, with options by their
/// flag's name. Without tokens, rows are called "0", "1", …. Errors, one sentence each: no JSON object, unknown,
/// repeated or missing keys, both forms at once, elements that are not numbers, names that can't be printed, too
/// many tokens or columns. Whether the matrices fit together is for trace() to say.
Status read_specification(const std::string& json, Specification* specification);

}  // namespace attn::explain

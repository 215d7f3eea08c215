// The attention problem that a command line states: q, k, v, how they lie, and the options.
#pragma once

#include <string>
#include <vector>

#include "cli/attention_flags.h"
#include "cli/inputs.h"

namespace CLI {
class App;
}

namespace attn::cli {

/// What was typed, not yet looked at. An empty text means that the flag was not given.
struct ProblemFlags {
  std::string q, k, v;
  std::string layout;
  std::string compute;
  AttentionFlags attention;

  /// Adds the flags to a verb. This object must outlive the verb's parsing.
  void add_to(CLI::App& verb);
  /// Adds --compute, too.
  void add_compute_to(CLI::App& verb);
};

/// A problem that is ready to compute. Views are [B, H, N, D], fewer dimensions aligned right.
struct Problem {
  Input q, k, v;
  DType compute = DType::f32;      ///< the arithmetic: f32 or f64
  DType out_dtype = DType::f32;    ///< q's own, but f64 where computed in f64, and f32 where f64 is computed in f32
  bool rows_before_heads = false;  ///< files are [B, N, H, D]
  AttentionSetup setup;
  std::vector<std::string> files;  ///< every file that is read

  const AttentionOptions& options() const { return setup.options; }

  /// The sizes of the result, dimensions that q lacks counted as 1.
  std::int64_t batch() const;
  std::int64_t query_heads() const;
  std::int64_t queries() const;
  std::int64_t keys() const;
  std::int64_t value_dim() const;
};

/// Reads the tensors and settles dtype and layout. Whether the shapes fit is the library's to say. Throws
/// Failure{2}.
Problem read_problem(const ProblemFlags& flags);

}  // namespace attn::cli

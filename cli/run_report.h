// What attn run tells about its work: the plan before, the summary after.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attn/attention.h"

namespace attn::cli {

/// A result that was written.
struct Written {
  std::string path;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
};

/// Prints the plan on stdout: a table, or one JSON object. `weights_bytes`: what the weights that are asked for take
/// where they are written; absent where none are.
void print_plan(const Plan& plan, std::optional<double> weights_bytes, bool as_json);

/// Prints on stdout what was written and how long the computing took: a line a file, or one JSON object.
void print_summary(const Plan& plan, std::span<const Written> written, double seconds, bool as_json);

}  // namespace attn::cli

// Every rule about what is written: shapes, dtypes, and memory of its own.
#pragma once

#include <array>
#include <string_view>

#include "attn/attention.h"
#include "src/destination.h"
#include "src/problem.h"

namespace attn {

/// [B, heads, rows, columns]; kNoColumns: a number a row, as lse, whose view has three dimensions.
using OutputShape = std::array<std::int64_t, 4>;
inline constexpr std::int64_t kNoColumns = -1;

/// Checks shape and memory of an output whose compute type is `compute` (f64 goes with f64 only).
Status check_output(std::string_view name, const OutputView& view, const OutputShape& shape, DType compute,
                    OutputView4* output);

/// The outputs' memory: shared with no input of the problem, nor with each other.
Status check_memory_of(std::string_view name, const OutputView4& output, const Problem& problem);
Status check_disjoint(std::string_view name, const OutputView4& output, std::string_view other_name,
                      const View4& other);

/// forward()'s out and lse.
Status check_results(const OutputView& out, const std::optional<OutputView>& lse, const Problem& problem,
                     Destination* to);

/// The parts of a state must fit each other and have dtype f32 or f64.
Status check_state(std::string_view name, const State& state, Destination* parts);

/// The same, of the problem's shape and with memory of its own.
Status check_state_of(const State& state, const Problem& problem, Destination* parts);

View4 readable(const OutputView4& view);

}  // namespace attn

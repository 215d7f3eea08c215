// One call of attention, with everything it reads: tests build it, vary it and run it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attn/attn.h"
#include "engine_tensor.h"

namespace attn::tests {

struct Sizes {
  std::int64_t batch = 1, query_heads = 1, kv_heads = 1, queries = 1, keys = 1, key_dim = 1, value_dim = 1;
};

struct Problem {
  Sizes sizes;
  Tensor q, k, v;
  DType out_dtype = DType::f32;
  Layout out_layout = Layout::row_major;

  std::optional<Tensor> mask, bias, alibi, sinks;
  std::vector<std::int64_t> key_lengths, query_lengths, query_starts, key_starts, position_offsets;

  /// Flags and numbers; options() adds the views and spans of what lies above.
  AttentionOptions plain;

  /// Valid while the problem lives and stays where it is.
  AttentionOptions options() const;

  DType compute() const { return q.dtype() == DType::f64 ? DType::f64 : DType::f32; }
};

/// Standard normal q, k and v, with q and k times `spread`.
Problem normal_problem(const Sizes& sizes, std::uint64_t seed, DType q = DType::f32, DType kv = DType::f32,
                       double spread = 1);

/// Standard normal numbers.
Tensor normal_tensor(DType dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed, double spread = 1);

struct Answer {
  Tensor out, lse;
};

/// forward() with out and lse. Fails the test where the library refuses, or writes beside its outputs.
Answer attend(const Problem& problem);

/// Every bit of `out` and `lse`.
testing::AssertionResult same_bits(const Answer& actual, const Answer& expected);
testing::AssertionResult same_bits(const Tensor& actual, const Tensor& expected);

/// Runs one SIMD target for a scope.
class ForcedIsa {
 public:
  explicit ForcedIsa(Isa isa);
  ~ForcedIsa();
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  Isa before_;
};

/// What this machine can run of the targets that promise the same bits: all but sse4, scalar first.
std::vector<Isa> isas_with_equal_bits();

/// How much to do: `full` in a plain build, less under sanitizers. ATTN_TEST_EFFORT, in percent, overrides both.
int effort(int full);

}  // namespace attn::tests

// Random problems of ten families, and answers made rightly or wrongly.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "attn/options.h"
#include "attn/tensor.h"
#include "diagnose/recipe.h"

namespace attn::diagnose {

/// Tensors and options that point into this object: it stays where it is.
class TestProblem {
 public:
  static constexpr int kFamilies = 10;
  static const char* family_name(int family);

  TestProblem(int family, std::uint64_t seed, DType dtype = DType::f32);
  TestProblem(const TestProblem&) = delete;
  TestProblem& operator=(const TestProblem&) = delete;

  TensorView q() const { return view(q_, {batch, heads, queries, dim}); }
  TensorView k() const { return view(k_, {batch, kv_heads, keys, dim}); }
  TensorView v() const { return view(v_, {batch, kv_heads, keys, value_dim}); }
  TensorView answer(const std::vector<std::uint8_t>& bytes) const {
    return {bytes.data(), dtype, {batch, heads, queries, value_dim}};
  }

  /// Out as a recipe makes it, rounded to the dtype once.
  std::vector<std::uint8_t> made_by(const reference::Inputs& inputs, const Recipe& recipe) const;

  /// Out rightly, in f32, keys in a random order and in tiles of a random size.
  std::vector<std::uint8_t> right_in_any_order(std::mt19937_64& random) const;
  /// The same with scores and weights rounded to the dtype, as fused 16-bit kernels do.
  std::vector<std::uint8_t> right_in_16_bits(std::mt19937_64& random) const;

  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, dim = 8, value_dim = 8;
  DType dtype;
  AttentionOptions options;

 private:
  TensorView view(const std::vector<std::uint8_t>& bytes, std::initializer_list<std::int64_t> shape) const {
    return {bytes.data(), dtype, shape};
  }
  std::vector<std::uint8_t> random_tensor(std::int64_t count, std::mt19937_64& random) const;
  std::vector<std::uint8_t> computed(std::mt19937_64& random, bool rounds) const;

  std::vector<std::uint8_t> q_, k_, v_, mask_;
  std::vector<float> bias_, alibi_, sinks_;
  std::vector<std::int64_t> lengths_;
};

}  // namespace attn::diagnose

#include "diagnose_problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "attn/dtype.h"
#include "reference/row.h"

namespace attn::diagnose {
namespace {

constexpr std::array<const char*, TestProblem::kFamilies> kNames = {"one head",
                                                                    "heads, causal",
                                                                    "more keys than queries, causal",
                                                                    "grouped, causal",
                                                                    "batch with a mask",
                                                                    "window",
                                                                    "one query on a cache",
                                                                    "long",
                                                                    "bias, softcap and a scale of its own",
                                                                    "ALiBi, sinks and lengths"};

void put(double number, DType dtype, std::vector<std::uint8_t>* bytes) {
  const auto add = [&](const auto& value) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes->insert(bytes->end(), from, from + sizeof value);
  };
  switch (dtype) {
    case DType::f16: return add(float_to_f16(static_cast<float>(number)));
    case DType::bf16: return add(float_to_bf16(static_cast<float>(number)));
    case DType::f64: return add(number);
    default: return add(static_cast<float>(number));
  }
}

}  // namespace

const char* TestProblem::family_name(int family) { return kNames[static_cast<std::size_t>(family)]; }

TestProblem::TestProblem(int family, std::uint64_t seed, DType dtype) : dtype(dtype) {
  std::mt19937_64 random(seed * 10 + static_cast<std::uint64_t>(family));
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  queries = keys = between(5, 24);
  dim = between(3, 20);
  value_dim = family % 2 ? dim : between(3, 20);
  switch (family) {
    case 0: break;
    case 1:
      heads = kv_heads = between(2, 5);
      options.causal = true;
      break;
    case 2:
      heads = kv_heads = 2;
      keys = queries + between(1, 20);
      options.causal = true;
      options.alignment = seed % 2 == 0 ? Alignment::bottom_right : Alignment::top_left;
      break;
    case 3:
      kv_heads = between(2, 3);
      heads = kv_heads * between(2, 3);
      options.causal = true;
      break;
    case 4: {
      batch = between(2, 3);
      heads = kv_heads = between(2, 3);
      for (std::int64_t n = 0; n < batch * queries * keys; ++n)
        mask_.push_back(random() % 3 != 0 && n / keys != 1);  // row 1 of the first sequence sees nothing
      options.mask = TensorView(mask_.data(), DType::boolean, {batch, 1, queries, keys});
      break;
    }
    case 5:
      heads = kv_heads = 2;
      queries = keys = between(10, 30);
      options.causal = true;
      options.window_left = between(0, 5);
      break;
    case 6:
      heads = kv_heads = 4;
      queries = 1;
      keys = between(20, 60);
      break;
    case 7:
      queries = keys = between(100, 300);
      options.causal = random() % 2 == 0;
      break;
    case 8:
      heads = kv_heads = 2;
      for (std::int64_t n = 0; n < queries * keys; ++n) bias_.push_back(static_cast<float>(between(-30, 30)) / 10);
      options.bias = TensorView(bias_.data(), DType::f32, {queries, keys});
      options.softcap = 2;
      options.scale = 0.4;
      options.causal = true;
      break;
    default:
      batch = 2;
      keys = between(20, 60);
      heads = kv_heads = between(2, 6);
      for (std::int64_t h = 0; h < heads; ++h) sinks_.push_back(static_cast<float>(between(-20, 20)) / 10);
      alibi_ = alibi_slopes(static_cast<int>(heads));
      lengths_ = {keys, between(2, keys)};
      options.alibi = TensorView(alibi_.data(), DType::f32, {heads});
      options.sinks = TensorView(sinks_.data(), DType::f32, {heads});
      options.key_lengths = lengths_;
      options.alignment = Alignment::top_left;
      break;
  }
  q_ = random_tensor(batch * heads * queries * dim, random);
  k_ = random_tensor(batch * kv_heads * keys * dim, random);
  v_ = random_tensor(batch * kv_heads * keys * value_dim, random);
}

std::vector<std::uint8_t> TestProblem::random_tensor(std::int64_t count, std::mt19937_64& random) const {
  std::normal_distribution<double> normal;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t n = 0; n < count; ++n) put(1.5 * normal(random), dtype, &bytes);
  return bytes;
}

std::vector<std::uint8_t> TestProblem::made_by(const reference::Inputs& inputs, const Recipe& recipe) const {
  RowMaker maker(inputs, recipe, {});
  std::vector<std::uint8_t> bytes;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        for (const double number : maker.row(b, h, i).out) put(number, dtype, &bytes);
      }
    }
  }
  return bytes;
}

std::vector<std::uint8_t> TestProblem::right_in_any_order(std::mt19937_64& random) const {
  return computed(random, false);
}
std::vector<std::uint8_t> TestProblem::right_in_16_bits(std::mt19937_64& random) const {
  return computed(random, true);
}

// An online softmax in f32 over keys in a random order.
std::vector<std::uint8_t> TestProblem::computed(std::mt19937_64& random, bool rounds) const {
  const reference::Inputs inputs(q(), k(), v(), options);
  const auto rounded = [&](float x) {
    if (!rounds) return x;
    return dtype == DType::f16 ? f16_to_float(float_to_f16(x)) : bf16_to_float(float_to_bf16(x));
  };
  const std::int64_t tile = 16 << random() % 4;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        reference::Row row = reference::attend(inputs, inputs.sequences[static_cast<std::size_t>(b)], h, i);
        std::vector<std::size_t> order(row.keys.size());
        std::iota(order.begin(), order.end(), 0U);
        std::shuffle(order.begin(), order.end(), random);
        float max = options.sinks ? static_cast<float>(reference::read_head(*options.sinks, h)) : -INFINITY;
        float sum = max > -INFINITY ? 1.0F : 0.0F;
        std::vector<float> out(static_cast<std::size_t>(value_dim));
        for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(tile)) {
          const std::size_t end = std::min(order.size(), begin + static_cast<std::size_t>(tile));
          float next = max;
          for (std::size_t n = begin; n < end; ++n)
            next = std::max(next, rounded(static_cast<float>(row.scores[order[n]])));
          const float rescale = max == -INFINITY ? 0 : std::exp(max - next);
          sum *= rescale;
          for (float& number : out) number *= rescale;
          for (std::size_t n = begin; n < end; ++n) {
            const float w = std::exp(rounded(static_cast<float>(row.scores[order[n]])) - next);
            sum += w;
            const double* value = inputs.value.row(b, inputs.key_head(h), row.keys[order[n]]);
            for (std::size_t c = 0; c < out.size(); ++c) out[c] += rounded(w) * static_cast<float>(value[c]);
          }
          max = next;
        }
        for (const float number : out) put(sum > 0 ? number / sum : 0, dtype, &bytes);
      }
    }
  }
  return bytes;
}

}  // namespace attn::diagnose

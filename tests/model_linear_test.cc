// Products of models: the same bits for a row however many rows are in the call, on every target, by any number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "attn/isa.h"
#include "formats/gguf.h"
#include "model/linear.h"
#include "model/rows.h"
#include "small_model.h"

namespace attn::model {
namespace {

using formats::GgufType;

constexpr GgufType kTypes[] = {GgufType::f32,  GgufType::f16,  GgufType::bf16, GgufType::q8_0,
                               GgufType::q4_0, GgufType::q4_1, GgufType::q4_k, GgufType::q6_k};

// A tensor with its bytes and what it packs to.
struct Packed {
  std::string bytes;
  formats::GgufTensor tensor;
  WeightMemory memory;
  Matrix matrix;

  Packed(GgufType type, std::int64_t outputs, std::int64_t inputs, std::mt19937_64& random)
      : bytes(random_tensor(type, outputs * inputs, 1, random)),
        tensor{"w", type, {outputs, inputs}, reinterpret_cast<const unsigned char*>(bytes.data())} {
    EXPECT_EQ(Matrix::pack(tensor, memory, inline_executor(), &matrix).message(), "");
  }
};

std::vector<float> random_rows(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// One chain of fused multiply-adds for each sum, from the rows as formats reads them.
std::vector<float> multiplied_plainly(const formats::GgufTensor& w, const std::vector<float>& x,
                                      std::int64_t rows) {
  const std::int64_t outputs = w.rows(), inputs = w.columns();
  std::vector<float> result(static_cast<std::size_t>(rows * outputs)), weights(static_cast<std::size_t>(inputs));
  for (std::int64_t o = 0; o < outputs; ++o) {
    formats::dequantise_row(w, o, weights.data());
    for (std::int64_t r = 0; r < rows; ++r) {
      float sum = 0;
      for (std::int64_t k = 0; k < inputs; ++k)
        sum = std::fma(x[static_cast<std::size_t>(r * inputs + k)], weights[static_cast<std::size_t>(k)], sum);
      result[static_cast<std::size_t>(r * outputs + o)] = sum;
    }
  }
  return result;
}

void expect_same_bits(const std::vector<float>& actual, const std::vector<float>& expected,
                      const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0) << where;
}

// Runs the body on every target with fused multiply-adds, and goes back to the best.
template <class Body>
void on_every_target(const Body& body) {
  const Isa best = current_isa();
  for (const Isa isa : available_isas()) {
    if (isa == Isa::sse4) continue;
    ASSERT_TRUE(force_isa(isa).ok());
    body(std::string(name_of(isa)));
  }
  ASSERT_TRUE(force_isa(best).ok());
}

TEST(Linear, EqualsTheChainOfEverySumInEveryForm) {
  std::mt19937_64 random(1);
  for (const GgufType type : kTypes) {
    const std::int64_t block = formats::block_of(type).numbers;
    for (const std::int64_t outputs : {1, 63, 64, 65, 200}) {
      const std::int64_t inputs =
          block == 1 ? 1 + static_cast<std::int64_t>(random() % 90) : block * (1 + outputs % 2);
      const Packed w(type, outputs, inputs, random);
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 6, 7, 12, 17}) {
        const std::vector<float> x = random_rows(rows, inputs, random);
        const std::vector<float> expected = multiplied_plainly(w.tensor, x, rows);
        on_every_target([&](const std::string& target) {
          std::vector<float> y(expected.size(), NAN);
          const Product product[] = {{&w.matrix, y.data(), outputs}};
          EXPECT_TRUE(multiply(x.data(), rows, inputs, product, inline_executor()).ok());
          expect_same_bits(y, expected,
                           std::string(formats::name_of(type)) + " " + target + ", rows " + std::to_string(rows) +
                               ", outputs " + std::to_string(outputs));
        });
      }
    }
  }
}

TEST(Linear, RowsAreTheSameWhoeverComputesThem) {
  std::mt19937_64 random(2);
  const auto pool = make_thread_pool(3, 0);
  const Packed a(GgufType::q4_1, 130, 96, random), b(GgufType::f32, 70, 96, random);
  constexpr std::int64_t kRows = 900, kStride = 100;
  const std::vector<float> x = random_rows(kRows, kStride, random);
  const auto product_of = [&](std::int64_t first, std::int64_t rows, Executor& executor) {
    std::vector<float> y(static_cast<std::size_t>(rows * 200), 7);
    const Product products[] = {{&a.matrix, y.data(), 200}, {&b.matrix, y.data() + 130, 200}};
    EXPECT_TRUE(multiply(x.data() + first * kStride, rows, kStride, products, executor).ok());
    return y;
  };
  const std::vector<float> whole = product_of(0, kRows, *pool);
  for (std::int64_t first = 0, rows = 1; first < kRows;
       first += rows, rows = 1 + static_cast<std::int64_t>(random() % 40)) {
    rows = std::min(rows, kRows - first);
    const std::vector<float> part = product_of(first, rows, rows % 2 ? *pool : inline_executor());
    expect_same_bits(part, {whole.begin() + first * 200, whole.begin() + (first + rows) * 200},
                     std::to_string(rows) + " rows from " + std::to_string(first));
  }
}

TEST(Linear, AddsAndBiasesAfterTheSum) {
  std::mt19937_64 random(3);
  const Packed w(GgufType::f32, 70, 33, random);
  const std::vector<float> x = random_rows(5, 33, random), before = random_rows(5, 70, random);
  const std::vector<float> bias = random_rows(1, 70, random), sums = multiplied_plainly(w.tensor, x, 5);
  std::vector<float> added = before, biased(sums.size());
  const Product products[] = {{&w.matrix, added.data(), 70, nullptr, Into::add},
                              {&w.matrix, biased.data(), 70, bias.data()}};
  EXPECT_TRUE(multiply(x.data(), 5, 33, products, inline_executor()).ok());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(added[i], before[i] + sums[i]);
    ASSERT_EQ(biased[i], sums[i] + bias[i % 70]);
  }
}

TEST(Linear, PacksTensorsOfAnyStridesAndDtype) {
  std::mt19937_64 random(4);
  const std::vector<float> numbers = random_rows(40, 20, random), x = random_rows(3, 40, random);
  std::vector<std::uint16_t> halves;
  for (const float number : numbers) halves.push_back(float_to_f16(number));
  // Its transpose: 20 outputs of 40 inputs.
  for (const bool half : {false, true}) {
    const TensorView view(half ? static_cast<const void*>(halves.data()) : numbers.data(),
                          half ? DType::f16 : DType::f32, {20, 40}, {1, 20});
    WeightMemory memory;
    Matrix matrix;
    ASSERT_EQ(Matrix::pack(view, memory, inline_executor(), &matrix).message(), "");
    std::vector<float> y(60);
    const Product product[] = {{&matrix, y.data(), 20}};
    EXPECT_TRUE(multiply(x.data(), 3, 40, product, inline_executor()).ok());
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t o = 0; o < 20; ++o) {
        float sum = 0;
        for (std::size_t k = 0; k < 40; ++k)
          sum = std::fma(x[r * 40 + k], half ? f16_to_float(halves[k * 20 + o]) : numbers[k * 20 + o], sum);
        ASSERT_EQ(y[r * 20 + o], sum);
      }
    }
  }
}

TEST(Rows, AreNormalisedAndActivatedAsTheFormulasSay) {
  std::mt19937_64 random(5);
  const auto pool = make_thread_pool(2, 0);
  for (const std::int64_t width : {1, 15, 16, 17, 100}) {
    const std::vector<float> x = random_rows(300, width, random), weight = random_rows(1, width, random),
                             bias = random_rows(1, width, random), up = random_rows(300, width, random);
    std::vector<float> rms(x.size()), layer = x, silu = x, bell = x;
    rms_norm(x.data(), 300, width, weight.data(), 1e-3F, rms.data(), *pool);
    layer_norm(layer.data(), 300, width, weight.data(), bias.data(), 1e-3F, *pool);
    silu_product(silu.data(), up.data(), 300 * width, *pool);
    gelu(bell.data(), 300 * width, *pool);
    for (std::size_t row = 0; row < 300; ++row) {
      const float* at = x.data() + row * static_cast<std::size_t>(width);
      double mean = 0, squares = 0, variance = 0;
      for (std::int64_t i = 0; i < width; ++i) mean += at[i] / static_cast<double>(width);
      for (std::int64_t i = 0; i < width; ++i)
        squares += static_cast<double>(at[i]) * at[i] / static_cast<double>(width);
      for (std::int64_t i = 0; i < width; ++i)
        variance += (at[i] - mean) * (at[i] - mean) / static_cast<double>(width);
      for (std::size_t i = 0; i < static_cast<std::size_t>(width); ++i) {
        const std::size_t n = row * static_cast<std::size_t>(width) + i;
        const double number = x[n];
        ASSERT_NEAR(rms[n], number / std::sqrt(squares + 1e-3F) * weight[i], 1e-5);
        ASSERT_NEAR(layer[n], (number - mean) / std::sqrt(variance + 1e-3F) * weight[i] + bias[i], 1e-4);
        ASSERT_NEAR(silu[n], number / (1 + std::exp(-number)) * up[n], 1e-5);
        ASSERT_NEAR(bell[n], number * 0.5 * std::erfc(-number / std::sqrt(2.0)), 1e-6);
      }
    }
  }
}

// Large numbers: e^−x overflows or vanishes.
TEST(Rows, SiluHoldsAtTheEnds) {
  on_every_target([](const std::string& target) {
    std::vector<float> x{-1e30F, -200, -90, 0, 90, 200, 1e30F, -INFINITY, INFINITY, NAN}, up(x.size(), 1);
    silu_product(x.data(), up.data(), static_cast<std::int64_t>(x.size()), inline_executor());
    for (int i : {0, 1, 2, 3}) EXPECT_LE(std::abs(x[static_cast<std::size_t>(i)]), 1e-30F) << target << " " << i;
    EXPECT_EQ(x[4], 90) << target;
    EXPECT_EQ(x[6], 1e30F) << target;
    EXPECT_EQ(x[8], INFINITY) << target;
    EXPECT_TRUE(std::isnan(x[9])) << target;
  });
}

}  // namespace
}  // namespace attn::model

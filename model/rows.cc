#include "model/rows.h"

#include <cmath>

#include "model/kernels.h"
#include "model/tasks.h"

namespace attn::model {
namespace {

// What a number takes, in multiply-adds: norms read and write memory, the others compute an exponential.
constexpr double kNormWork = 10, kSiluWork = 40, kGeluWork = 1000;

// Numbers of a piece, small enough that pieces spread evenly.
constexpr std::int64_t kPieceNumbers = 16384;

// Sums in sixteen chains, which compilers keep in vectors, folded in one fixed order.
constexpr std::int64_t kChains = 16;

float fold(float (&sums)[kChains]) {
  for (std::int64_t half = kChains / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

float sum(const float* x, std::int64_t width) {
  float sums[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= width; i += kChains) {
    for (std::int64_t c = 0; c < kChains; ++c) sums[c] += x[i + c];
  }
  for (std::int64_t c = 0; i < width; ++i, ++c) sums[c] += x[i];
  return fold(sums);
}

// Σ (x − from)².
float squares(const float* x, std::int64_t width, float from) {
  float sums[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains <= width; i += kChains) {
    for (std::int64_t c = 0; c < kChains; ++c) sums[c] += (x[i + c] - from) * (x[i + c] - from);
  }
  for (std::int64_t c = 0; i < width; ++i, ++c) sums[c] += (x[i] - from) * (x[i] - from);
  return fold(sums);
}

// Calls body(begin, end) for pieces of `count` units of `numbers` numbers each.
template <class Body>
void in_pieces(Executor& executor, std::int64_t count, std::int64_t numbers, double work, const Body& body) {
  const std::int64_t pieces = std::max<std::int64_t>(1, std::min(count, count * numbers / kPieceNumbers));
  for_each(executor, pieces, work * static_cast<double>(count * numbers), [&](std::int64_t piece, int) {
    const Range range = range_of(count, pieces, piece);
    body(range.begin, range.end);
  });
}

}  // namespace

void rms_norm(const float* x, std::int64_t rows, std::int64_t width, const float* weight, float epsilon, float* to,
              Executor& executor) {
  in_pieces(executor, rows, width, kNormWork, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* from = x + row * width;
      const float factor = 1 / std::sqrt(squares(from, width, 0) / static_cast<float>(width) + epsilon);
      for (std::int64_t i = 0; i < width; ++i) to[row * width + i] = from[i] * factor * weight[i];
    }
  });
}

void layer_norm(float* x, std::int64_t rows, std::int64_t width, const float* weight, const float* bias,
                float epsilon, Executor& executor) {
  in_pieces(executor, rows, width, kNormWork, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* at = x + row * width;
      const float mean = sum(at, width) / static_cast<float>(width);
      const float factor = 1 / std::sqrt(squares(at, width, mean) / static_cast<float>(width) + epsilon);
      for (std::int64_t i = 0; i < width; ++i) at[i] = (at[i] - mean) * factor * weight[i] + bias[i];
    }
  });
}

void silu_product(float* gate, const float* up, std::int64_t count, Executor& executor) {
  const Kernels& target = kernels();
  in_pieces(executor, count, 1, kSiluWork, [&](std::int64_t begin, std::int64_t end) {
    target.silu_product(gate + begin, up + begin, end - begin);
  });
}

void gelu(float* x, std::int64_t count, Executor& executor) {
  in_pieces(executor, count, 1, kGeluWork, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double number = x[i];
      x[i] = static_cast<float>(0.5 * number * (1 + std::erf(number / std::sqrt(2.0))));
    }
  });
}

}  // namespace attn::model

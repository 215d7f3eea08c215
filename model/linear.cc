#include "model/linear.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "model/kernels.h"
#include "model/tasks.h"

namespace attn::model {
namespace {

// Rows that read a panel once it is unpacked: unpacking then takes 1 % of the time, and their sums lie in L2.
constexpr std::int64_t kRowsTogether = 384;

// Where few rows read the matrix, memory takes longer than multiplying: a weight as long as so many multiply-adds.
constexpr double kReadWork = 5;

// Pieces a thread, where all threads read the matrix once: one that is late leaves its later pieces to the others.
constexpr std::int64_t kPiecesPerThread = 3;

// Memory of this thread, kept for later calls: a product takes less time than getting it from the system. nullptr where it
// can't be had.
float* scratch_of_thread(std::int64_t numbers) {
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<float, Free> memory;
  thread_local std::int64_t size = 0;
  if (numbers > size) {
    size = (numbers + 15) / 16 * 16;
    memory.reset(static_cast<float*>(std::aligned_alloc(64, static_cast<std::size_t>(size) * sizeof(float))));
    if (!memory) size = 0;
  }
  return memory.get();
}

// One call, cut into panels of all products × chunks of rows.
class Multiplication {
 public:
  Multiplication(const float* x, std::int64_t rows, std::int64_t stride, std::span<const Product> products)
      : x_(x), rows_(rows), stride_(stride), products_(products), kernels_(kernels()) {
    for (const Product& product : products) {
      panels_ += product.matrix->panels();
      inputs_ = std::max(inputs_, product.matrix->inputs());
      work_ += static_cast<double>(rows * product.matrix->outputs() * product.matrix->inputs());
    }
  }

  Status run(Executor& executor) {
    if (rows_ <= kFewRows && kernels_.multiply_few) {
      const std::int64_t pieces = std::min<std::int64_t>(panels_, kPiecesPerThread * executor.threads());
      for_each(executor, pieces, kReadWork * work_, [&](std::int64_t piece, int) {
        alignas(64) float sums[kFewRows * kPanelOutputs];
        const Range range = range_of(panels_, pieces, piece);
        for (std::int64_t panel = range.begin; panel < range.end; ++panel) few(panel, sums);
      });
      return {};
    }
    std::atomic<bool> failed{false};
    const std::int64_t chunks = (rows_ + kRowsTogether - 1) / kRowsTogether;
    for_each(executor, panels_ * chunks, work_, [&](std::int64_t task, int) {
      const Range range = range_of(rows_, chunks, task % chunks);
      float* scratch = scratch_of_thread((inputs_ + range.end - range.begin) * kPanelOutputs);
      if (!scratch) {
        failed = true;
      } else {
        many(task / chunks, range, scratch);
      }
    });
    return failed ? Status::error("model: no memory to multiply " + std::to_string(rows_) +
                                  " rows; run fewer together")
                  : Status();
  }

 private:
  // The product that the panel belongs to, and its number there.
  const Product& product_of(std::int64_t* panel) const {
    const Product* product = products_.data();
    for (; *panel >= product->matrix->panels(); ++product) *panel -= product->matrix->panels();
    return *product;
  }

  void few(std::int64_t panel, float* sums) const {
    const Product& product = product_of(&panel);
    kernels_.multiply_few(*product.matrix, panel, x_, stride_, rows_, sums);
    finish(product, panel, {0, rows_}, sums);
  }

  void many(std::int64_t panel, Range range, float* scratch) const {
    const Product& product = product_of(&panel);
    const Matrix& matrix = *product.matrix;
    float* sums = scratch + inputs_ * kPanelOutputs;
    const float* numbers = scratch;
    if (matrix.form() == WeightForm::f32) {
      numbers = reinterpret_cast<const float*>(matrix.panel(panel));
    } else {
      kernels_.unpack(matrix, panel, scratch);
    }
    kernels_.multiply(numbers, matrix.inputs(), x_ + range.begin * stride_, stride_, range.end - range.begin, sums);
    finish(product, panel, range, sums);
  }

  static void finish(const Product& product, std::int64_t panel, Range range, const float* sums) {
    const std::int64_t first = panel * kPanelOutputs;
    const std::int64_t outputs = std::min(kPanelOutputs, product.matrix->outputs() - first);
    for (std::int64_t row = range.begin; row < range.end; ++row, sums += kPanelOutputs) {
      float* out = product.out + row * product.stride + first;
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float sum = product.bias ? sums[o] + product.bias[first + o] : sums[o];
        out[o] = product.into == Into::add ? out[o] + sum : sum;
      }
    }
  }

  const float* x_;
  std::int64_t rows_, stride_;
  std::span<const Product> products_;
  const Kernels& kernels_;
  std::int64_t panels_ = 0, inputs_ = 0;
  double work_ = 0;
};

}  // namespace

Status multiply(const float* x, std::int64_t rows, std::int64_t stride, std::span<const Product> products,
                Executor& executor) {
  return rows > 0 ? Multiplication(x, rows, stride, products).run(executor) : Status();
}

}  // namespace attn::model

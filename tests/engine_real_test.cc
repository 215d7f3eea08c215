// q, k and v of trained models, against answers in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "attn/attn.h"
#include "engine_problem.h"
#include "formats/read.h"
#include "onnx_case.h"

namespace attn::tests {
namespace {

const std::string kFolder = ATTN_SHARED "/real/";

class Real : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << kFolder << " is not there: skipped";
  }

  static Tensor read(const std::string& name) {
    formats::Tensor tensor;
    const Status status = formats::read_tensor(kFolder + name, &tensor);
    EXPECT_TRUE(status.ok()) << status.message();
    return in_rows(tensor);
  }

  // A copy; three dimensions are [heads, rows, columns] here.
  static Tensor in_rows(formats::Tensor tensor) {
    while (tensor.shape.size() < 4) {
      tensor.shape.insert(tensor.shape.begin(), 1);
      tensor.strides.insert(tensor.strides.begin(), 0);
    }
    return in_heads(tensor, 1);
  }

  static void expect_near(const Tensor& actual, const Tensor& expected, double tolerance) {
    ASSERT_EQ(actual.size(), expected.size());
    double worst = 0;
    for (std::int64_t i = 0; i < actual.size(); ++i) {
      ASSERT_FALSE(std::isnan(actual.get(i))) << i;
      worst = std::max(worst, std::fabs(actual.get(i) - expected.get(i)));
    }
    EXPECT_LE(worst, tolerance);
  }

  static void check(const std::string& model, const AttentionOptions& options) {
    const Tensor q = read(model + "/q.npy"), k = read(model + "/k.npy"), v = read(model + "/v.npy");
    const Tensor expected = read(model + "/expected_out.npy");
    for (const Isa isa : available_isas()) {
      const ForcedIsa forced(isa);
      for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 1e-5}, {DType::f64, 1e-12}}) {
        SCOPED_TRACE(std::string(name_of(isa)) + " " + name_of(dtype));
        Tensor out(dtype, expected.shape());
        const Status status =
            forward(q.in(dtype).view(), k.in(dtype).view(), v.in(dtype).view(), out.output(), options);
        ASSERT_TRUE(status.ok()) << status.message();
        expect_near(out, expected, tolerance);
      }
    }
  }
};

TEST_F(Real, AnEncoderOfChemistryAttendsAsItDid) { check("chemistry-encoder", {}); }

TEST_F(Real, ADecoderOfStoriesAttendsAsItDid) {
  AttentionOptions options;
  options.causal = true;
  check("story-decoder", options);
}

TEST_F(Real, TheHeadThatMapsAtomsHasItsWeights) {
  const Tensor q = read("chemistry-encoder/q.npy"), k = read("chemistry-encoder/k.npy");
  const Tensor expected = read("chemistry-encoder/expected_weights_head5.npy");
  const std::int64_t heads[] = {5};
  for (const auto& [dtype, tolerance] : {std::pair{DType::f32, 1e-5}, {DType::f64, 1e-12}}) {
    Tensor table(dtype, {1, 1, 56, 56});
    const Status status = weights(q.in(dtype).view(), k.in(dtype).view(), table.output(), {}, {}, heads);
    ASSERT_TRUE(status.ok()) << status.message();
    expect_near(table, expected, tolerance);
  }
}

}  // namespace
}  // namespace attn::tests

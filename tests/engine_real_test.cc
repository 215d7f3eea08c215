// q, k and v of trained models, against answers in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "attn/attn.h"
#include "cache_problem.h"
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

// The figures of docs/numerics.md: keys and values in a cache of each type, against the float64 answers.
TEST_F(Real, StoredInACacheLosesWhatItsTypeLoses) {
  for (const auto& [model, causal] : {std::pair{"chemistry-encoder", false}, {"story-decoder", true}}) {
    const std::string folder = model;
    const Tensor q = read(folder + "/q.npy"), k = read(folder + "/k.npy"), v = read(folder + "/v.npy");
    const Tensor expected = read(folder + "/expected_out.npy");
    const auto &queries = q.shape(), &keys = k.shape();
    Problem problem{.sizes = {1, queries[1], keys[1], queries[2], keys[2], keys[3], v.shape()[3]},
                    .q = q.in(DType::f32),
                    .k = k.in(DType::f32),
                    .v = v.in(DType::f32)};
    problem.plain.causal = causal;
    const std::pair<CacheType, double> most[] = {
        {CacheType::f32, 1e-6}, {CacheType::f16, 2e-3}, {CacheType::bf16, 2e-2}, {CacheType::q8, 1e-1}};
    for (const auto& [type, relative] : most) {
      const Answer answer = attend(problem, cached(problem, type, 16, 1));
      double worst = 0, squares = 0, expected_squares = 0;
      for (std::int64_t i = 0; i < expected.size(); ++i) {
        const double off = answer.out.get(i) - expected.get(i);
        ASSERT_FALSE(std::isnan(off));
        worst = std::max(worst, std::fabs(off));
        squares += off * off;
        expected_squares += expected.get(i) * expected.get(i);
      }
      const double error = std::sqrt(squares / expected_squares);
      std::printf("%-18s %-5s largest %.1e, relative %.1e\n", model, name_of(type), worst, error);
      EXPECT_LE(error, relative) << model << ", " << name_of(type);
    }
  }
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

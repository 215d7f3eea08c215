// The ONNX project's own cases of its operators Attention (over tensors and over a cache) and RotaryEmbedding, one test a
// folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "attn/attn.h"
#include "cache_problem.h"
#include "engine_problem.h"
#include "formats/read.h"
#include "onnx_case.h"
#include "reference/row.h"

namespace attn::tests {
namespace {

const std::string kFolder = ATTN_SHARED "/conformance/onnx";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  std::error_code nothing;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, nothing)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The tolerance of ONNX's own runner.
void expect_close(const Tensor& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(actual.shape(), expected.shape()) << name;
  const double absolute = expected.dtype() == DType::f16 ? 1e-3 : 1e-7;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double a = actual.get(i), e = expected.get(i);
    ASSERT_TRUE(a == e || std::fabs(a - e) <= absolute + 1e-3 * std::fabs(e))
        << name << "[" << i << "] is " << a << ", but should be " << e;
  }
}

// Modes 0 to 2: scores on their way, which the library does not hand out; the judge does.
Tensor scores_of(const OnnxAttention& a) {
  AttentionOptions options = a.options();
  if (a.scores_mode < 2) options.bias.reset();
  if (a.scores_mode < 1) options.softcap.reset();
  const reference::Inputs inputs(a.q.view(), a.k.view(), a.v.view(), options);
  const auto& q = a.q.shape();
  const std::int64_t keys = a.k.shape()[2];
  Tensor scores(DType::f32, {q[0], q[1], q[2], keys});
  for (std::int64_t i = 0; i < scores.size(); ++i) {
    const std::int64_t j = i % keys, row = i / keys % q[2], head = i / keys / q[2] % q[1];
    const reference::Sequence& sequence = inputs.sequences[i / keys / q[2] / q[1]];
    const bool hidden = a.scores_mode == 2 && !reference::is_visible(inputs, sequence, head, row, j);
    scores.set(
        i, hidden ? -std::numeric_limits<double>::infinity() : reference::score(inputs, sequence, head, row, j));
  }
  return scores;
}

Tensor weights_of(const OnnxAttention& a) {
  Tensor table(DType::f32, {a.q.shape()[0], a.q.shape()[1], a.q.shape()[2], a.k.shape()[2]});
  const Status status = weights(a.q.view(), a.k.view(), table.output(), a.options());
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

void check_attention(const OnnxCase& onnx) {
  OnnxAttention a;
  const Status understood = understand(onnx, &a);
  ASSERT_TRUE(understood.ok()) << understood.message();
  const Tensor expected = in_heads(onnx.outputs.at("Y"), a.q.shape()[1]);
  Tensor out(expected.dtype(), expected.shape());
  const Status status = forward(a.q.view(), a.k.view(), a.v.view(), out.output(), a.options());
  ASSERT_TRUE(status.ok()) << status.message();
  expect_close(out, expected, "Y");
  for (const auto& [name, tensor] : onnx.outputs) {
    if (name == "present_key") {
      EXPECT_TRUE(same_bits(a.k, in_heads(tensor, 1)));
    } else if (name == "present_value") {
      EXPECT_TRUE(same_bits(a.v, in_heads(tensor, 1)));
    } else if (name == "qk_matmul_output") {
      expect_close(a.scores_mode == 3 ? weights_of(a) : scores_of(a), in_heads(tensor, 1), name);
    } else {
      EXPECT_EQ(name, "Y");
    }
  }
}

// The same through a cache: past keys are appended first, and of padded ones only the valid part.
void check_cached(const OnnxCase& onnx) {
  OnnxAttention a;
  const Status understood = understand(onnx, &a);
  ASSERT_TRUE(understood.ok()) << understood.message();
  const auto &q = a.q.shape(), &k = a.k.shape();
  Problem problem{.sizes = {q[0], q[1], k[1], q[2], k[2], k[3], a.v.shape()[3]},
                  .q = a.q,
                  .k = a.k,
                  .v = a.v,
                  .mask = a.mask,
                  .bias = a.bias,
                  .key_lengths = a.key_lengths,
                  .position_offsets = a.position_offsets,
                  .plain = a.plain};
  const Tensor expected = in_heads(onnx.outputs.at("Y"), q[1]);
  problem.out_dtype = expected.dtype();
  const CacheType type = a.k.dtype() == DType::f16 ? CacheType::f16 : CacheType::f32;
  for (const std::uint64_t seed : {1, 2, 3}) {  // other chunks
    const CachedProblem kept = cached(problem, type, 16, seed);
    expect_close(attend(with_stored_numbers(problem, kept), kept).out, expected, "Y");
  }
}

void check_rotation(const OnnxCase& onnx) {
  const auto& attributes = onnx.attributes;
  const Tensor x = in_heads(onnx.inputs.at("X"), attributes.value("num_heads", 1));
  const Tensor expected = in_heads(onnx.outputs.at("Y"), attributes.value("num_heads", 1));
  for (const auto& [name, value] : attributes.items()) {
    ASSERT_TRUE(name == "interleaved" || name == "num_heads" || name == "rotary_embedding_dim") << name;
  }
  const bool adjacent = attributes.value("interleaved", 0) != 0;
  TensorView cos, sin;
  ASSERT_TRUE(formats::view_of(onnx.inputs.at("cos_cache"), &cos).ok());
  ASSERT_TRUE(formats::view_of(onnx.inputs.at("sin_cache"), &sin).ok());
  std::vector<std::int64_t> positions;
  if (onnx.has("position_ids")) {
    formats::Tensor flat = onnx.inputs.at("position_ids");
    flat.shape = {flat.shape[0] * flat.shape[1]};
    flat.strides = {1};
    ASSERT_TRUE(formats::integers_of(flat, &positions).ok());
  }
  Tensor out(expected.dtype(), expected.shape());
  ASSERT_EQ(rotate_by_table(x.view(), out.output(), cos, sin, positions,
                            adjacent ? RopeLayout::adjacent_pairs : RopeLayout::half_split)
                .message(),
            "");
  if (attributes.contains("rotary_embedding_dim")) {
    EXPECT_EQ(2 * cos.shape[cos.rank - 1], attributes.at("rotary_embedding_dim").get<std::int64_t>());
  }
  expect_close(out, expected, "Y");
}

class Onnx : public testing::TestWithParam<std::string> {};

TEST_P(Onnx, Case) {
  OnnxCase onnx;
  const Status status = read_case(kFolder + "/" + GetParam(), &onnx);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(onnx.name, GetParam());
  if (onnx.operation == "RotaryEmbedding") return check_rotation(onnx);
  ASSERT_EQ(onnx.operation, "Attention") << "an operator that is not known to this test";
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    SCOPED_TRACE(name_of(isa));
    check_attention(onnx);
    check_cached(onnx);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Onnx, testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Onnx);

TEST(OnnxCases, AreThere) {
  if (case_names().empty()) GTEST_SKIP() << kFolder << " is not there: its cases are skipped";
  const std::vector<std::string> names = case_names();
  const auto attention =
      std::count_if(names.begin(), names.end(), [](const auto& n) { return n.rfind("attention", 0) == 0; });
  EXPECT_GE(attention, 52);
  EXPECT_GE(static_cast<std::int64_t>(names.size()) - attention, 6) << "rotary embeddings";
}

}  // namespace
}  // namespace attn::tests

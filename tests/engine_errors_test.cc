// Wrong calls get one sentence that names the argument, and leave the outputs as they were.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "engine_parts.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

// A call that is right, and everything in it that a test can make wrong.
struct Call {
  Problem problem = normal_problem({2, 4, 2, 12, 20, 8, 6}, 1);
  Tensor out_memory = Tensor(DType::f32, {2, 4, 12, 6}), lse_memory = Tensor(DType::f32, {2, 4, 12});
  TensorView q = problem.q.view(), k = problem.k.view(), v = problem.v.view();
  OutputView out = out_memory.output();
  std::optional<OutputView> lse = lse_memory.output();
  AttentionOptions options;

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

struct WrongCall {
  const char* sentence;  ///< what it begins with
  std::function<void(Call*)> spoil;
};

// One line that says more than the argument's name.
void expect_sentence(const std::string& message, const std::string& beginning) {
  EXPECT_EQ(message.substr(0, beginning.size()), beginning);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_GT(message.size(), 25U) << message;
  EXPECT_NE(message.back(), '.') << message;
}

void expect_refused(const WrongCall& wrong, bool plan_too) {
  Call call;
  const Tensor out_before = call.out_memory, lse_before = call.lse_memory;
  const Problem before = call.problem;
  wrong.spoil(&call);
  const Status status = forward(call.q, call.k, call.v, call.out, call.options, call.lse);
  expect_sentence(status.message(), wrong.sentence);
  EXPECT_TRUE(same_bits(call.out_memory, out_before) && same_bits(call.lse_memory, lse_before)) << wrong.sentence;
  EXPECT_TRUE(same_bits(call.problem.v, before.v)) << wrong.sentence;
  if (!plan_too) return;
  Plan result;
  result.path = "untouched";
  EXPECT_EQ(plan(call.q, call.k, call.v, call.options, &result).message(), status.message());
  EXPECT_EQ(result.path, "untouched");
}

void expect_all_refused(const std::vector<WrongCall>& wrong_calls, bool plan_too = true) {
  for (const WrongCall& wrong : wrong_calls) {
    SCOPED_TRACE(wrong.sentence);
    expect_refused(wrong, plan_too);
  }
}

TEST(Errors, TheCallThatTheyStartFromIsRight) {
  Call call;
  const Status status = forward(call.q, call.k, call.v, call.out, call.options, call.lse);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Errors, Shapes) {
  expect_all_refused({
      {"k: head dim 7, but q has 8; both are Dk and must be equal", [](Call* c) { c->k.shape[3] = 7; }},
      {"q: head dim 0", [](Call* c) { c->q.shape[3] = c->k.shape[3] = 0; }},
      {"v: head dim 0", [](Call* c) { c->v.shape[3] = 0; }},
      {"k: batch 1, but q has 2", [](Call* c) { c->k.shape[0] = 1; }},
      {"q: 3 heads, but k has 2", [](Call* c) { c->q.shape[1] = 3; }},
      {"q: 4 heads, but k has 0", [](Call* c) { c->k.shape[1] = c->v.shape[1] = 0; }},
      {"v: keys 19, but k has 20", [](Call* c) { c->v.shape[2] = 19; }},
      {"v: heads 1, but k has 2", [](Call* c) { c->v.shape[1] = 1; }},
      {"v: batch 1, but k has 2", [](Call* c) { c->v.shape[0] = 1; }},
      {"q: 1 dimensions", [](Call* c) { c->q.rank = 1; }},
      {"k: 0 dimensions", [](Call* c) { c->k.rank = 0; }},
      {"v: 5 dimensions", [](Call* c) { c->v.rank = 5; }},
      {"v: -1 dimensions", [](Call* c) { c->v.rank = -1; }},
      {"q: shape [2, 4, -12, 8]", [](Call* c) { c->q.shape[2] = -12; }},
      {"k: shape [2, -2, 20, 8]", [](Call* c) { c->k.shape[1] = -2; }},
  });
}

TEST(Errors, Dtypes) {
  expect_all_refused({
      {"v: dtype f16, but k has f32", [](Call* c) { c->v.dtype = DType::f16; }},
      {"k: dtype f64, but q has f32", [](Call* c) { c->k.dtype = c->v.dtype = DType::f64; }},
      {"k: dtype f32, but q has f64", [](Call* c) { c->q.dtype = DType::f64; }},
      {"q: dtype bool", [](Call* c) { c->q.dtype = DType::boolean; }},
  });
}

TEST(Errors, Memory) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 60;
  expect_all_refused({
      {"q: the data pointer is null", [](Call* c) { c->q.data = nullptr; }},
      {"k: the data pointer is null", [](Call* c) { c->k.data = nullptr; }},
      {"v: the data pointer is null", [](Call* c) { c->v.data = nullptr; }},
      {"q: shape [2, 4, 12, 8] reaches beyond", [](Call* c) { c->q.strides[0] = kHuge; }},
      {"k: shape [2, 2, 20, 8] reaches beyond", [](Call* c) { c->k.strides[2] = -kHuge; }},
      {"v: shape [2, 2, 20, 6] reaches beyond",
       [](Call* c) { c->v.strides[3] = std::numeric_limits<std::int64_t>::min(); }},
      {"q: shape [1152921504606846976, 4, 12, 8] reaches beyond",
       [](Call* c) { c->q.shape[0] = kHuge, c->q.strides[0] = 0; }},
  });
}

TEST(Errors, Factors) {
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  expect_all_refused({
      {"scale: nan", [](Call* c) { c->options.scale = kNan; }},
      {"scale: inf", [](Call* c) { c->options.scale = kInfinity; }},
      {"softcap: 0", [](Call* c) { c->options.softcap = 0; }},
      {"softcap: -2", [](Call* c) { c->options.softcap = -2; }},
      {"softcap: nan", [](Call* c) { c->options.softcap = kNan; }},
      {"softcap: inf", [](Call* c) { c->options.softcap = kInfinity; }},
  });
}

TEST(Errors, Positions) {
  static const std::int64_t three[] = {1, 2, 3};
  expect_all_refused({
      {"causal: 12 queries and 20 keys", [](Call* c) { c->options.causal = true; }},
      {"window: 12 queries and 20 keys", [](Call* c) { c->options.window_left = 3; }},
      {"window: 12 queries and 20 keys", [](Call* c) { c->options.window_right = 3; }},
      {"alibi: 12 queries and 20 keys",
       [](Call* c) {
         c->problem.alibi = normal_tensor(DType::f32, {4}, 1);
         c->options.alibi = c->problem.alibi->view();
       }},
      {"window_left: -1", [](Call* c) { c->options.window_left = -1, c->options.alignment = Alignment::top_left; }},
      {"window_right: -3",
       [](Call* c) { c->options.window_right = -3, c->options.alignment = Alignment::top_left; }},
      {"sink_tokens: -1", [](Call* c) { c->options.sink_tokens = -1; }},
      {"position_offset: given with another alignment", [](Call* c) { c->options.position_offset = 3; }},
      {"position_offset: given with another alignment",
       [](Call* c) { c->options.position_offsets = three, c->options.alignment = Alignment::bottom_right; }},
      {"position_offsets: 3 offsets, but the batch has 2",
       [](Call* c) { c->options.position_offsets = three, c->options.alignment = Alignment::offset; }},
      {"key_offset: -1", [](Call* c) { c->options.key_offset = -1; }},
      {"key_offset: 9223372036854775807",
       [](Call* c) { c->options.key_offset = std::numeric_limits<std::int64_t>::max(); }},
      {"key_offset: 256 makes k a part of the keys",
       [](Call* c) {
         c->options.key_offset = 256;
         c->options.causal = true;
         c->options.alignment = Alignment::bottom_right;
       }},
  });
}

TEST(Errors, CausalWithoutAlignmentNamesBothChoices) {
  Call call;
  call.options.causal = true;
  const std::string message = forward(call.q, call.k, call.v, call.out, call.options).message();
  EXPECT_NE(message.find("top-left"), std::string::npos) << message;
  EXPECT_NE(message.find("bottom-right"), std::string::npos) << message;
}

TEST(Errors, Lengths) {
  static const std::int64_t one[] = {3}, negative[] = {3, -1}, keys[] = {21, 3}, queries[] = {3, 13},
                            fine[] = {3, 4};
  static const std::int64_t starts[] = {0, 5, 12}, late[] = {1, 5, 12}, down[] = {0, 5, 4}, beyond[] = {0, 5, 21},
                            two[] = {0, 5}, right_keys[] = {0, 5, 20},
                            most[] = {0, std::numeric_limits<std::int64_t>::max()};
  const auto pack = [](Call* c, std::span<const std::int64_t> of_queries, std::span<const std::int64_t> of_keys) {
    c->q.shape[0] = c->k.shape[0] = c->v.shape[0] = c->out.shape[0] = c->lse->shape[0] = 1;
    c->options.query_starts = of_queries;
    c->options.key_starts = of_keys;
  };
  expect_all_refused({
      {"key_lengths: 1 lengths, but the batch has 2", [](Call* c) { c->options.key_lengths = one; }},
      {"query_lengths: 1 lengths, but the batch has 2", [](Call* c) { c->options.query_lengths = one; }},
      {"key_lengths: -1 for sequence 1", [](Call* c) { c->options.key_lengths = negative; }},
      {"key_lengths: 21 for sequence 0", [](Call* c) { c->options.key_lengths = keys; }},
      {"query_lengths: 13 for sequence 1", [](Call* c) { c->options.query_lengths = queries; }},
      {"key_starts: absent", [&](Call* c) { pack(c, starts, {}); }},
      {"query_starts: absent", [&](Call* c) { pack(c, {}, right_keys); }},
      {"query_starts: begins with 1", [&](Call* c) { pack(c, late, right_keys); }},
      {"query_starts: 4 follows 5", [&](Call* c) { pack(c, down, right_keys); }},
      {"key_starts: ends at 21", [&](Call* c) { pack(c, starts, beyond); }},
      {"query_starts: ends at 9223372036854775807", [&](Call* c) { pack(c, most, two); }},
      {"key_starts: 2 numbers, but query_starts has 3", [&](Call* c) { pack(c, starts, two); }},
      {"q, k: batch 2 and 2",
       [](Call* c) { c->options.query_starts = starts, c->options.key_starts = right_keys; }},
      {"key_lengths, query_lengths: given together with starts",
       [&](Call* c) { pack(c, starts, right_keys), c->options.key_lengths = fine; }},
  });
}

TEST(Errors, Masks) {
  const auto mask = [](Call* c, DType dtype, std::vector<std::int64_t> shape) {
    c->problem.mask = Tensor(dtype, std::move(shape));
    c->options.mask = c->problem.mask->view();
  };
  const auto bias = [](Call* c, DType dtype, std::vector<std::int64_t> shape) {
    c->problem.bias = Tensor(dtype, std::move(shape));
    c->options.bias = c->problem.bias->view();
  };
  expect_all_refused({
      {"mask: dtype f32; a mask is boolean", [&](Call* c) { mask(c, DType::f32, {20}); }},
      {"mask: shape [19] does not broadcast against [B, Hq, N, M] = [2, 4, 12, 20]",
       [&](Call* c) { mask(c, DType::boolean, {19}); }},
      {"mask: shape [2, 2, 1, 1] does not broadcast",
       [&](Call* c) {
         mask(c, DType::boolean, {2, 2, 1, 1});
       }},
      {"mask: shape [0] does not broadcast", [&](Call* c) { mask(c, DType::boolean, {0}); }},
      {"mask: the data pointer is null",
       [&](Call* c) { mask(c, DType::boolean, {20}), c->options.mask->data = nullptr; }},
      {"bias: shape [12, 1, 20] does not broadcast",
       [&](Call* c) {
         bias(c, DType::f32, {12, 1, 20});
       }},
      {"bias: dtype bool", [&](Call* c) { bias(c, DType::boolean, {20}); }},
      {"bias: dtype f64, but q has f32", [&](Call* c) { bias(c, DType::f64, {20}); }},
  });
}

TEST(Errors, NumbersForEachHead) {
  const auto sinks = [](Call* c, DType dtype, std::vector<std::int64_t> shape) {
    c->problem.sinks = Tensor(dtype, std::move(shape));
    c->options.sinks = c->problem.sinks->view();
  };
  expect_all_refused({
      {"sinks: shape [2], but there are 4 query heads", [&](Call* c) { sinks(c, DType::f32, {2}); }},
      {"sinks: shape [1, 4], but there are 4 query heads",
       [&](Call* c) {
         sinks(c, DType::f32, {1, 4});
       }},
      {"sinks: dtype f64, but q has f32", [&](Call* c) { sinks(c, DType::f64, {4}); }},
      {"sinks: dtype bool", [&](Call* c) { sinks(c, DType::boolean, {4}); }},
      {"alibi: shape [3], but there are 4 query heads",
       [](Call* c) {
         c->problem.alibi = Tensor(DType::f32, {3});
         c->options.alibi = c->problem.alibi->view();
         c->options.alignment = Alignment::top_left;
       }},
  });
}

TEST(Errors, Outputs) {
  expect_all_refused(
      {
          {"out: shape [2, 4, 12, 5], but [2, 4, 12, 6] is written", [](Call* c) { c->out.shape[3] = 5; }},
          {"out: dtype f64", [](Call* c) { c->out.dtype = DType::f64; }},
          {"out: dtype bool", [](Call* c) { c->out.dtype = DType::boolean; }},
          {"out: the data pointer is null", [](Call* c) { c->out.data = nullptr; }},
          {"out: elements of the view overlap each other", [](Call* c) { c->out.strides[0] = 0; }},
          {"out: elements of the view overlap each other", [](Call* c) { c->out.strides[2] = 5; }},
          {"out: elements of the view overlap each other", [](Call* c) { c->out.strides[2] = -5; }},
          {"out: shares memory with v", [](Call* c) { c->v.data = c->out.data; }},
          {"out: 0 dimensions", [](Call* c) { c->out.rank = 0; }},
          {"lse: shape [2, 4, 11], but [2, 4, 12] is written", [](Call* c) { c->lse->shape[2] = 11; }},
          {"lse: 4 dimensions", [](Call* c) { c->lse->rank = 4; }},
          {"lse: shares memory with out", [](Call* c) { c->lse->data = c->out.data; }},
          {"lse: shares memory with q", [](Call* c) { c->lse->data = const_cast<void*>(c->q.data); }},
          {"lse: elements of the view overlap each other", [](Call* c) { c->lse->strides[1] = 0; }},
      },
      /*plan_too=*/false);
}

// q, k, v and out side by side in each row of one buffer: their address ranges interleave, their elements do not
// meet.
TEST(Errors, SlotsOfOneFusedBufferAreNoOverlap) {
  constexpr std::int64_t kRows = 10, kWidth = 8;
  std::vector<float> fused(kRows * 4 * kWidth + kRows), separate(kRows * kWidth);
  std::vector<float> lse(kRows);
  for (std::size_t i = 0; i < fused.size(); ++i) fused[i] = 0.01F * static_cast<float>(i % 37);
  const auto slot = [&](std::int64_t first) {
    return OutputView(fused.data() + first * kWidth, DType::f32, {kRows, kWidth}, {4 * kWidth, 1});
  };
  ASSERT_TRUE(forward(slot(0), slot(1), slot(2), {separate.data(), DType::f32, {kRows, kWidth}}).ok());
  const Status status = forward(slot(0), slot(1), slot(2), slot(3));
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::int64_t i = 0; i < kRows * kWidth; ++i) {
    EXPECT_EQ(fused[i / kWidth * 4 * kWidth + 3 * kWidth + i % kWidth], separate[i]) << i;
  }
  // One element to the left, and the last of v is the first of out.
  OutputView shifted = slot(3);
  shifted.data = fused.data() + 3 * kWidth - 1;
  expect_sentence(forward(slot(0), slot(1), slot(2), shifted).message(), "out: shares memory with v");
}

TEST(Errors, OfWeights) {
  Call c;
  Tensor memory(DType::f32, {2, 4, 12, 20});
  const Tensor before = memory;
  const auto refuse = [&](const char* sentence, const OutputView& to, std::span<const std::int64_t> rows = {},
                          std::span<const std::int64_t> heads = {}) {
    expect_sentence(weights(c.q, c.k, to, c.options, rows, heads).message(), sentence);
    EXPECT_TRUE(same_bits(memory, before));
  };
  const std::int64_t beyond[] = {0, 12}, negative[] = {-1}, head[] = {4}, one[] = {1};
  refuse("rows: 12", memory.output(), beyond);
  refuse("rows: -1", memory.output(), negative);
  refuse("heads: 4", memory.output(), {}, head);
  refuse("weights: shape [2, 4, 12, 20], but [2, 4, 1, 20] is written", memory.output(), one);
  OutputView overlapping = memory.output();
  overlapping.strides[3] = 0;
  refuse("weights: elements of the view overlap", overlapping);
  OutputView on_keys(const_cast<void*>(c.k.data), DType::f32, {2, 4, 12, 20});
  refuse("weights: shares memory with", on_keys);
  c.k.shape[3] = 7;
  refuse("k: head dim 7, but q has 8", memory.output());
}

TEST(Errors, OfStatesAndMerges) {
  Call c;
  const Problem& p = c.problem;
  StateParts state(p), other(p), shorter(normal_problem({2, 4, 2, 11, 20, 8, 6}, 1));
  c.problem.sinks = normal_tensor(DType::f32, {4}, 1);
  AttentionOptions with_sinks;
  with_sinks.sinks = c.problem.sinks->view();
  expect_sentence(forward_state(c.q, c.k, c.v, state.state(), with_sinks).message(), "sinks: given to a partial");
  expect_sentence(forward_state(c.q, c.k, c.v, shorter.state()).message(), "state.out: shape [2, 4, 11, 6]");
  State mixed = state.state();
  mixed.sum.dtype = DType::f64;
  expect_sentence(forward_state(c.q, c.k, c.v, mixed).message(), "state.sum: dtype f64, but out has f32");
  mixed = state.state();
  mixed.max.data = mixed.sum.data;
  expect_sentence(forward_state(c.q, c.k, c.v, mixed).message(), "state.sum: shares memory with state.max");
  mixed = state.state();
  mixed.out.dtype = DType::f16;
  expect_sentence(forward_state(c.q, c.k, c.v, mixed).message(), "state.out: dtype f16");
  expect_sentence(merge_states(state.state(), shorter.state()).message(), "next.out: shape [2, 4, 11, 6]");
  expect_sentence(merge_states(state.state(), state.state()).message(), "into: shares memory with next");
  expect_sentence(finish_state(state.state(), shorter.out.output()).message(), "out: shape [2, 4, 11, 6]");
  expect_sentence(finish_state(state.state(), state.out.output()).message(), "out: shares memory with state");
  const Tensor two = normal_tensor(DType::f32, {2}, 1);
  expect_sentence(finish_state(state.state(), other.out.output(), std::nullopt, two.view()).message(),
                  "sinks: shape [2]");

  const TensorView outs[] = {state.out.view(), shorter.out.view()}, lses[] = {state.max.view(), shorter.max.view()};
  expect_sentence(merge(outs, lses, other.out.output()).message(), "outs[1]: shape [2, 4, 11, 6]");
  expect_sentence(merge(std::span(outs, 1), lses, other.out.output()).message(), "lses: 2 parts, but outs has 1");
  expect_sentence(merge(std::span(outs, 1), std::span(lses, 1), state.out.output()).message(),
                  "out: shares memory with outs[0]");
  for (const StateParts* parts : {&state, &other, &shorter}) {
    EXPECT_TRUE(same_bits(parts->out, Tensor(DType::f32, parts->out.shape()))) << "an error wrote something";
  }
}

TEST(Errors, OfTargetsThatAreNotThere) {
  const std::vector<Isa> here = available_isas();
  for (const Isa isa : {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (std::find(here.begin(), here.end(), isa) != here.end()) continue;
    const Isa before = current_isa();
    expect_sentence(force_isa(isa).message(), std::string("isa: ") + name_of(isa));
    EXPECT_EQ(current_isa(), before);
  }
}

}  // namespace
}  // namespace attn::tests

// attn run computes what it should, whichever files and flags it is given.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli_program.h"

namespace attn::cli {
namespace {

const std::string kExample = std::string(ATTN_SOURCE_DIR) + "/examples/by-hand.safetensors:";
const std::string kReal = std::string(ATTN_SOURCE_DIR) + "/../shared/real/";

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!(std::abs(a[i] - b[i]) <= largest)) largest = std::abs(a[i] - b[i]);  // NaN shows
  }
  return largest;
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>(std::sin(1.0 + 0.7 * static_cast<double>(i)));
  return numbers;
}

class Run : public CliTest {
 protected:
  /// Runs on three files and expects success.
  Outcome run(const std::vector<std::string>& tensors, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"run", "--q", tensors[0], "--k", tensors[1], "--v", tensors[2]};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Outcome outcome = attn(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return outcome;
  }

  Outcome run_example(const std::vector<std::string>& more) const {
    return run({kExample + "q", kExample + "k", kExample + "v"}, more);
  }

  /// The result of the given flags on small random tensors: two heads, three queries, five keys, D 4.
  std::vector<double> on_small(const std::vector<std::string>& flags) const {
    write("q.npy", {2, 3, 4}, ramp(24));
    write("k.npy", {2, 5, 4}, ramp(40));
    write("v.npy", {2, 5, 4}, ramp(40));
    std::vector<std::string> more = {"-o", "out.npy"};
    more.insert(more.end(), flags.begin(), flags.end());
    run({"q.npy", "k.npy", "v.npy"}, more);
    return read("out.npy");
  }

  std::vector<std::string> real(const std::string& name) const {
    return {kReal + name + "/q.npy", kReal + name + "/k.npy", kReal + name + "/v.npy"};
  }
};

const std::vector<double> kExampleOut = {3, 0, 1.5, 2, 2.1821044959399427, 0.8178955040600576};

TEST_F(Run, TheWorkedExample) {
  run_example({"--causal", "-o", "out.npy", "--lse", "lse.npy", "--weights", "weights.npy"});
  std::vector<std::int64_t> shape;
  EXPECT_LT(largest_difference(read("out.npy", &shape), kExampleOut), 1e-6);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{3, 2}));
  const std::vector<double> weights = {
      1, 0, 0, 0.5, 0.5, 0, 0.672841798375977, 0.16357910081201152, 0.16357910081201152};
  EXPECT_LT(largest_difference(read("weights.npy", &shape), weights), 1e-6);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{3, 3}));
  const double root = std::sqrt(2.0);
  const std::vector<double> lse = {5 / root, 1 / root + std::log(2.0),
                                   std::log(std::exp(3 / root) + 2 * std::exp(1 / root))};
  EXPECT_LT(largest_difference(read("lse.npy", &shape), lse), 1e-6);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(files(), (std::set<std::string>{"out.npy", "lse.npy", "weights.npy"}));
}

TEST_F(Run, DoublePrecisionWritesDoubles) {
  run_example({"--causal", "--compute", "f64", "-o", "out.safetensors"});
  EXPECT_LT(largest_difference(read("out.safetensors"), kExampleOut), 1e-15);
  formats::Tensor tensor;
  ASSERT_TRUE(formats::read_tensor(path("out.safetensors").string(), &tensor).ok());
  EXPECT_EQ(tensor.type, formats::ElementType::f64);
}

TEST_F(Run, WeightsOfChosenRowsAndHeads) {
  write("q.npy", {2, 3, 4}, ramp(24));
  run({"q.npy", "q.npy", "q.npy"}, {"-o", "out.npy", "--weights", "all.npy"});
  run({"q.npy", "q.npy", "q.npy"}, {"-o", "out.npy", "--weights", "some.npy", "--rows", "2,0", "--head", "1"});
  std::vector<std::int64_t> shape;
  const auto all = read("all.npy"), some = read("some.npy", &shape);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{1, 2, 3}));
  for (std::size_t key = 0; key < 3; ++key) {
    EXPECT_EQ(some[key], all[(1 * 3 + 2) * 3 + key]);
    EXPECT_EQ(some[3 + key], all[(1 * 3 + 0) * 3 + key]);
  }
}

TEST_F(Run, BothLayoutsGiveTheSameBits) {
  const auto heads_first = ramp(1 * 3 * 4 * 2);  // [B, N, H, D] = [1, 3, 4, 2]
  std::vector<float> rows_first(heads_first.size());
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t h = 0; h < 4; ++h) {
      for (std::size_t d = 0; d < 2; ++d) rows_first[(n * 4 + h) * 2 + d] = heads_first[(h * 3 + n) * 2 + d];
    }
  }
  write("bhsd.npy", {1, 4, 3, 2}, heads_first);
  write("bshd.npy", {1, 3, 4, 2}, rows_first);
  run({"bhsd.npy", "bhsd.npy", "bhsd.npy"}, {"-o", "out-bhsd.npy", "--causal"});
  run({"bshd.npy", "bshd.npy", "bshd.npy"}, {"-o", "out-bshd.npy", "--causal", "--layout", "bshd"});
  std::vector<std::int64_t> shape;
  const auto expected = read("out-bhsd.npy"), out = read("out-bshd.npy", &shape);
  EXPECT_EQ(shape, (std::vector<std::int64_t>{1, 3, 4, 2}));
  for (std::size_t n = 0; n < 3; ++n) {
    for (std::size_t h = 0; h < 4; ++h) {
      for (std::size_t d = 0; d < 2; ++d) EXPECT_EQ(out[(n * 4 + h) * 2 + d], expected[(h * 3 + n) * 2 + d]);
    }
  }
}

TEST_F(Run, EveryFlagHasItsEffect) {
  write("sinks.npy", {2}, {0.5F, -0.25F});
  write("bias.npy", {3, 5}, ramp(15));
  std::vector<unsigned char> see(15, 1);
  see[1] = see[7] = 0;
  write_view("mask.npy", TensorView(see.data(), DType::boolean, {3, 5}));
  std::vector<std::vector<double>> results = {on_small({})};
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--causal=top-left"},
                                             {"--causal=bottom-right"},
                                             {"--causal=1"},
                                             {"--causal", "--align", "3"},
                                             {"--causal=bottom-right", "--window", "1"},
                                             {"--causal=bottom-right", "--window", "1", "--sink-tokens", "1"},
                                             {"--window", "1,0", "--align", "top-left"},
                                             {"--window", "0,inf", "--align", "top-left"},
                                             {"--scale", "-0.75"},
                                             {"--softcap", "0.5"},
                                             {"--alibi", "--align", "bottom-right"},
                                             {"--lengths", "4", "--compute", "f64"},
                                             {"--sinks", "sinks.npy"},
                                             {"--mask", "bias.npy"},
                                             {"--mask", "mask.npy"}}) {
    const auto result = on_small(flags);
    for (const auto& other : results) {
      EXPECT_GT(largest_difference(result, other), 1e-4) << flags.front() << " changes nothing";
    }
    results.push_back(result);
  }
}

TEST_F(Run, WhatMeansTheSameGivesTheSameBits) {
  EXPECT_EQ(on_small({"--causal=bottom-right"}), on_small({"--causal=2"}));
  EXPECT_EQ(on_small({"--causal=-1"}), on_small({"--causal", "--align", "-1"}));
  EXPECT_EQ(on_small({"--causal=top-left", "--window", "inf"}), on_small({"--causal=0"}));
  EXPECT_EQ(on_small({"--threads", "1"}), on_small({"--threads", "3"}));
  EXPECT_EQ(on_small({"--lengths", "5"}), on_small({}));
}

TEST_F(Run, TheOutputHasTheTypeOfQ) {
  const std::vector<std::uint16_t> ones(24, 0x3C00);
  write_view("q.npy", TensorView(ones.data(), DType::f16, {2, 3, 4}));
  write("k.npy", {2, 3, 4}, ramp(24));
  run({"q.npy", "k.npy", "k.npy"}, {"-o", "out.npy"});
  formats::Tensor tensor;
  ASSERT_TRUE(formats::read_tensor(path("out.npy").string(), &tensor).ok());
  EXPECT_EQ(tensor.type, formats::ElementType::f16);
}

TEST_F(Run, StandardOutputHoldsTheTensorAlone) {
  run_example({"--causal", "-o", "file.npy"});
  const Outcome outcome = run_example({"--causal", "-o", "-"});
  EXPECT_EQ(outcome.out, contents_of(path("file.npy")));
}

TEST_F(Run, PlanWritesNothing) {
  const Outcome outcome = run_example({"--causal", "--plan", "--json", "-o", "out.npy"});
  const auto plan = nlohmann::json::parse(outcome.out);
  for (const char* key :
       {"path", "isa", "compute", "threads", "tiles", "scratch_bytes", "flops", "bytes", "table_bytes"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
  EXPECT_EQ(plan["compute"], "f32");
  EXPECT_EQ(plan["flops"], 2 * (2 + 2) * 6);  // six pairs of a query and a key that it sees
  EXPECT_EQ(plan["table_bytes"], 3 * 3 * 4);
  EXPECT_TRUE(files().empty());
  EXPECT_FALSE(plan.contains("weights_bytes"));
  EXPECT_NE(run_example({"--causal", "--plan"}).out.find("never stored\n"), std::string::npos);
}

TEST_F(Run, PlanCountsTheWeightsThatAreAskedFor) {
  const auto bytes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--plan", "--json", "--weights", "w.npy"};
    flags.insert(flags.end(), more.begin(), more.end());
    return nlohmann::json::parse(run_example(flags).out)["weights_bytes"].get<int>();
  };
  EXPECT_EQ(bytes({}), 3 * 3 * 4);
  EXPECT_EQ(bytes({"--rows", "2,0"}), 2 * 3 * 4);
  EXPECT_EQ(bytes({"--compute", "f64"}), 3 * 3 * 8);
  EXPECT_NE(run_example({"--plan", "--weights", "w.npy"}).out.find("weights     36 bytes, written"),
            std::string::npos);
  EXPECT_TRUE(files().empty());
}

TEST_F(Run, TheSummaryNamesWhatWasWritten) {
  EXPECT_EQ(run_example({"-o", "out.npy"}).out.find("out.npy: [3, 2] f32\n"), 0U);
  const auto summary = nlohmann::json::parse(run_example({"-o", "out.npy", "--json"}).out);
  EXPECT_EQ(summary["written"][0]["path"], "out.npy");
  EXPECT_EQ(summary["written"][0]["shape"], (std::vector<int>{3, 2}));
}

TEST_F(Run, AnOldFileIsReplacedWhole) {
  std::ofstream(path("out.npy")) << std::string(5000, 'x');
  run_example({"--causal", "-o", "out.npy"});
  EXPECT_LT(largest_difference(read("out.npy"), kExampleOut), 1e-6);
}

TEST_F(Run, NothingToSeeGivesZeros) {
  write("q.npy", {2, 4}, ramp(8));
  write("none.npy", {0, 4}, {});
  run({"q.npy", "none.npy", "none.npy"}, {"-o", "out.npy", "--lse", "lse.npy"});
  EXPECT_EQ(read("out.npy"), std::vector<double>(8, 0));
  EXPECT_EQ(read("lse.npy"), std::vector<double>(2, -INFINITY));
}

TEST_F(Run, ALayerOfATrainedDecoder) {
  if (!std::filesystem::exists(kReal)) GTEST_SKIP() << "skipped: the tensors of trained models are not here";
  const auto expected = read(kReal + "story-decoder/expected_out.npy");
  run(real("story-decoder"), {"--causal", "-o", "out.npy"});
  EXPECT_LT(largest_difference(read("out.npy"), expected), 1e-5);
  run(real("story-decoder"), {"--causal", "--compute", "f64", "-o", "out.npy"});
  EXPECT_LT(largest_difference(read("out.npy"), expected), 1e-12);
}

TEST_F(Run, ALayerOfATrainedEncoder) {
  if (!std::filesystem::exists(kReal)) GTEST_SKIP() << "skipped: the tensors of trained models are not here";
  const std::string expected = kReal + "chemistry-encoder/expected_";
  run(real("chemistry-encoder"), {"-o", "out.npy", "--weights", "weights.npy", "--head", "5"});
  EXPECT_LT(largest_difference(read("out.npy"), read(expected + "out.npy")), 1e-5);
  EXPECT_LT(largest_difference(read("weights.npy"), read(expected + "weights_head5.npy")), 1e-5);
  run(real("chemistry-encoder"), {"--compute", "f64", "-o", "out.npy", "--weights", "weights.npy", "--head", "5"});
  EXPECT_LT(largest_difference(read("out.npy"), read(expected + "out.npy")), 1e-12);
  EXPECT_LT(largest_difference(read("weights.npy"), read(expected + "weights_head5.npy")), 1e-12);
}

}  // namespace
}  // namespace attn::cli

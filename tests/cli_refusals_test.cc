// Wrong use and bad input: exit code 2, one line on stderr that says what to do, and no file left behind.
#include "tests/cli_program.h"

namespace attn::cli {
namespace {

/// A command line, and what its refusal must speak of.
struct Refusal {
  std::vector<std::string> arguments;
  std::string says;
};

class Refusals : public CliTest {
 protected:
  Refusals() {
    write("q.npy", {2, 3, 4}, std::vector<float>(24, 0.5F));
    write("k.npy", {2, 3, 4}, std::vector<float>(24, 0.25F));
    write("v.npy", {2, 3, 4}, std::vector<float>(24, 1.0F));
    write("k-of-five.npy", {2, 5, 4}, std::vector<float>(40, 0.25F));
    write("v-of-five.npy", {2, 5, 4}, std::vector<float>(40, 1.0F));
    write("k-of-dim-three.npy", {2, 3, 3}, std::vector<float>(18, 0.25F));
    write("three-heads.npy", {3, 3, 4}, std::vector<float>(36, 1.0F));
    write("one-dimension.npy", {4}, std::vector<float>(4, 1.0F));
    write("sinks.npy", {1}, {0.5F});
    write("mask.npy", {7, 3}, std::vector<float>(21, 0.0F));
    const std::vector<double> doubles(24, 1.0);
    write_view("f64.npy", TensorView(doubles.data(), DType::f64, {2, 3, 4}));
    const std::vector<std::uint16_t> halves(24, 0x3C00);
    write_view("f16.npy", TensorView(halves.data(), DType::f16, {2, 3, 4}));
    write_view("bf16.safetensors", TensorView(halves.data(), DType::bf16, {2, 3, 4}));
    std::ofstream(path("empty.npy")).close();
    std::ofstream(path("words.npy")) << "these are words, not numbers";
    write_oversized("four-gigabytes.npy");
  }

  // Claims 2^30 numbers and holds none of them.
  void write_oversized(const std::string& name) const {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 1024, 1024), }";
    header.resize(117, ' ');
    std::ofstream(path(name), std::ios::binary) << "\x93NUMPY\x01" << '\0' << '\x76' << '\0' << header << '\n';
  }

  static std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static std::vector<std::string> run_with(const std::vector<std::string>& more) {
    return with({"run", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "-o", "out.npy"}, more);
  }

  static std::vector<std::string> run_on(const std::string& q, const std::string& k, const std::string& v) {
    return {"run", "--q", q, "--k", k, "--v", v, "-o", "out.npy"};
  }

  void expect(const std::vector<Refusal>& refusals) const {
    const auto before = files();
    for (const auto& [arguments, says] : refusals) {
      std::string line = "attn";
      for (const std::string& argument : arguments) line += " " + argument;
      SCOPED_TRACE(line);
      const Outcome outcome = attn(arguments);
      EXPECT_EQ(outcome.exit_code, 2);
      EXPECT_EQ(outcome.out, "");
      EXPECT_TRUE(outcome.err.starts_with("attn")) << outcome.err;
      EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
      EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err << "does not speak of " << says;
      EXPECT_EQ(files(), before);
    }
  }
};

TEST_F(Refusals, ShapesThatDoNotFit) {
  expect({{run_on("q.npy", "k-of-dim-three.npy", "v.npy"), "k: "},
          {run_on("q.npy", "k.npy", "v-of-five.npy"), "v: "},
          {run_on("q.npy", "three-heads.npy", "three-heads.npy"), "multiple"},
          {run_on("three-heads.npy", "k.npy", "v.npy"), "multiple"},
          {run_on("one-dimension.npy", "k.npy", "v.npy"), "--q: "},
          {run_with({"--mask", "mask.npy"}), "7"},
          {run_with({"--sinks", "mask.npy"}), "sinks"},
          {run_with({"--sinks", "sinks.npy"}), "has the shape [1], but q has 2 heads"},
          {run_with({"--lengths", "3,3"}), "--lengths: 2 given for 1 sequence;"},
          {run_with({"--lengths", "4"}), "--lengths: 4, but k has 3 keys"},
          {run_with({"--layout", "bshd"}), "--layout bshd"},
          {run_with({"--weights", "w.npy", "--rows", "3"}), "--rows: 3"},
          {run_with({"--weights", "w.npy", "--head", "0,2"}), "--head: 2"}});
}

TEST_F(Refusals, TypesThatDoNotFit) {
  const std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }";
  std::ofstream(path("integers.npy"), std::ios::binary)
      << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size()) << '\0' << header << std::string(24, '\0');
  expect({{run_with({"--mask", "integers.npy"}), "convert a mask to bool (true = may attend) or to a float"},
          {run_on("q.npy", "k.npy", "f16.npy"), "f16"},
          {run_on("q.npy", "f64.npy", "v.npy"), "--compute f64"},
          {{"run", "--q", "bf16.safetensors", "--k", "k.npy", "--v", "v.npy", "-o", "out.npy"}, ".safetensors"}});
}

TEST_F(Refusals, CausalWithoutAlignment) {
  const auto five_keys = run_on("q.npy", "k-of-five.npy", "v-of-five.npy");
  expect(
      {{with(five_keys, {"--causal"}), "--causal: 3 queries and 5 keys; where they differ, write --causal=bottom-"},
       {with(five_keys, {"--causal"}), "or --causal=top-left"},
       {with(five_keys, {"--causal", "--window", "2"}), "--causal=top-left"},
       {with(five_keys, {"--window", "2"}), "--window: 3 queries and 5 keys; where they differ, write --align bot"},
       {with(five_keys, {"--alibi"}), "or --align top-left"},
       {run_with({"--causal", "--lengths", "1"}), "--causal: 3 queries and 1 key in sequence 0 (--lengths);"}});
}

TEST_F(Refusals, WhatWouldHaveNoEffect) {
  expect({{run_with({"--sink-tokens", "1"}), "--sink-tokens: 1 given without a window"},
          {run_with({"--sink-tokens", "1", "--causal"}), "add --window LEFT"},
          {run_with({"--align", "top-left"}), "--align: top-left given, but nothing asks"}});
}

TEST_F(Refusals, NumbersThatAreNone) {
  expect({{run_with({"--scale", "nan"}), "--scale: \"nan\""},
          {run_with({"--scale", "inf"}), "--scale: \"inf\""},
          {run_with({"--scale", "0.5x"}), "--scale: \"0.5x\""},
          {run_with({"--softcap", "-1"}), "--softcap: -1"},
          {run_with({"--softcap", "nan"}), "--softcap: "},
          {run_with({"--window", "few"}), "--window: "},
          {run_with({"--window", "2,3,4"}), "--window: "},
          {run_with({"--window", "-1"}), "--window: \"-1\" is no reach; give 0 or more keys, or inf"},
          {run_with({"--window", "1,-1"}), "--window: \"-1\" is no reach"},
          {run_with({"--window=-5"}), "--window: \"-5\" is no reach"},
          {run_with({"--sink-tokens", "-1"}), "--sink-tokens: "},
          {run_with({"--causal=sideways"}), "--causal: \"sideways\""},
          {run_with({"--causal=99999999999999999999"}), "is above 9223372036854775807, the most"},
          {run_with({"--causal=-99999999999999999999"}), "is below -9223372036854775807, the least"},
          {run_with({"--lengths", "99999999999999999999"}), "is above 9223372036854775807"},
          {run_with({"--causal=top-left", "--align", "bottom-right"}), "--align: "},
          {run_with({"--align", "middle"}), "--align: "},
          {run_with({"--threads", "0"}), "--threads: \"0\""},
          {run_with({"--threads", "100000"}), "--threads: \"100000\" is above 1024"},
          {run_with({"--lengths", "3,"}), "--lengths: "},
          {run_with({"--scale", ""}), "empty"},
          {run_with({"--scale="}), "--scale="}});
}

TEST_F(Refusals, Files) {
  expect({{run_on("absent.npy", "k.npy", "v.npy"), "absent.npy"},
          {run_on("empty.npy", "k.npy", "v.npy"), "empty.npy"},
          {run_on("words.npy", "k.npy", "v.npy"), "words.npy"},
          {run_on(".", "k.npy", "v.npy"), "--q: "},
          {run_on("four-gigabytes.npy", "k.npy", "v.npy"), "four-gigabytes.npy"},
          {{"run", "--q", "q.npy", "--k", "k.npy", "-o", "out.npy"}, "--v: not given"},
          {{"run", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy"}, "-o: not given"},
          {{"run", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "-o", "q.npy"}, "-o: q.npy is an input"},
          {{"run", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "-o", "./k.npy"}, "is an input"},
          {run_with({"--lse", "v.npy"}), "--lse: v.npy is an input"},
          {run_with({"--lse", "./out.npy"}), "--lse: ./out.npy is where -o goes"},
          {run_with({"--lse", "-"}), "\"-\" is for -o"},
          {run_with({"--lse", "absent/lse.npy"}), "--lse: absent/lse.npy: there is no directory absent; make it"},
          {{"run", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "-o", "out.txt"}, "out.txt"},
          {{"run", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "-o", "-", "--json"}, "--json: "}});
}

TEST_F(Refusals, Arguments) {
  expect({{{"--frobnicate"}, "--frobnicate"},
          {run_with({"--frobnicate"}), "\"--frobnicate\" is not an argument here; attn run --help"},
          {run_with({"--causal", "top-left"}), "write it as --causal=top-left"},
          {run_with({"leftover"}), "\"leftover\" is not an argument here"},
          {run_with({"--q", "q.npy"}), "--q: given 2 times; give it once"},
          {run_with({"-o", "other.npy"}), "-o: given 2 times; give it once"},
          {{"run", "--out", "a.npy", "--out=b.npy"}, "--out: given 2 times; give it once"},
          {run_with({"--causal=top-left", "--causal=1"}), "--causal: given 2 times; give it once"},
          {run_with({"--rows", "1"}), "--rows: chooses from --weights"},
          {run_with({"--layout", "sideways"}), "--layout: "},
          {run_with({"--compute", "f16"}), "--compute: "},
          {{"info", "--scale", "2"}, "--scale"},
          {{"run", "-o"}, "-o: no value follows it; write -o FILE"},
          {{"run", "--q"}, "--q: no value follows it; write --q FILE[:NAME]"}});
}

TEST_F(Refusals, NamesThatAreNone) {
  expect({{{"frobnicate"}, "attn: \"frobnicate\" is no verb; the verbs are explain, run, check, probe, cost, map"},
          {{"cost", "-n", "10", "--cache-type", "q4"}, "--cache-type: \"q4\" is none; give f32, bf16, f16 or q8"}});
}

TEST_F(Refusals, HostileSizes) {
  expect({{{"cost"}, "-n: not given"},
          {{"cost", "-n", "0"}, "-n: \"0\" is below 1"},
          {{"cost", "-n", "-5"}, "-n: \"-5\""},
          {{"cost", "-n", "1e99"}, "-n: \"1e99\""},
          {{"cost", "-n", "99999999999999999999"}, "is above 9223372036854775807"},
          {{"cost", "-n", "10", "--heads", "6", "--kv-heads", "4"}, "--heads: 6"},
          {{"cost", "-n", "10", "--threads", "0"}, "--threads: "}});
}

TEST_F(Refusals, SixteenBitProductsOnATargetThatHasNone) {
  ASSERT_EQ(setenv("ATTN_ISA", "scalar", 1), 0);
  expect({{run_with({"--compute", "bf16"}), "--compute bf16: scalar on this machine has no"}});
  ASSERT_EQ(unsetenv("ATTN_ISA"), 0);
}

TEST_F(Refusals, AnEnvironmentThatCanNotBeMet) {
  ASSERT_EQ(setenv("ATTN_ISA", "abacus", 1), 0);
  expect({{{"info"}, "ATTN_ISA: \"abacus\""}});
  ASSERT_EQ(unsetenv("ATTN_ISA"), 0);
  ASSERT_EQ(setenv("ATTN_THREADS", "many", 1), 0);
  expect({{{"info"}, "ATTN_THREADS: \"many\""}, {run_with({}), "ATTN_THREADS"}});
  ASSERT_EQ(unsetenv("ATTN_THREADS"), 0);
}

TEST_F(Refusals, AFullDiskIsNoSuccess) {
  const Outcome outcome = execute({"sh", "-c", std::string(ATTN_PROGRAM) + " info > /dev/full"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("stdout"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace attn::cli

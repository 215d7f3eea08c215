// attn bench: what it prints, for shapes of one's own, and what it refuses.
#include <nlohmann/json.hpp>

#include "tests/cli_program.h"

namespace attn::cli {
namespace {

class Bench : public CliTest {
 protected:
  void write_shapes(const std::string& text) const { std::ofstream(path("shapes.json")) << text; }

  Outcome bench(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"bench", "--shapes", "shapes.json", "--seconds", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return attn(arguments);
  }
};

TEST_F(Bench, MeasuresTheShapesInAFile) {
  write_shapes(R"([{"name": "mine", "dtype": "f32", "shape": [1, 4, 2, 32, 48, 16], "causal": true},
                   {"name": "next token", "dtype": "bf16", "shape": [2, 4, 2, 1, 1024, 32]}])");
  const Outcome outcome = bench({"--json", "--threads", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto object = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(object["threads"], 1);
  EXPECT_GT(object["peak_gflops"], 0);
  EXPECT_GT(object["read_gbps"], 0);
  ASSERT_EQ(object["results"].size(), 2U);
  const auto& prefill = object["results"][0];
  const auto& decode = object["results"][1];
  EXPECT_EQ(prefill["name"], "mine");
  EXPECT_EQ(prefill["shape"], (std::vector<int>{1, 4, 2, 32, 48, 16}));
  EXPECT_EQ(prefill["causal"], true);
  EXPECT_EQ(prefill["compute"], "f32");
  // The last query sees all 48 keys, the first 17 of them: 32·(17 + 48)/2 pairs.
  EXPECT_NEAR(prefill["gflops"].get<double>() * prefill["ms"].get<double>(), 4.0 * 4 * (32 * 65 / 2) * 16 / 1e6,
              1e-9);
  EXPECT_EQ(prefill["share_of"], "peak_gflops");
  EXPECT_EQ(decode["dtype"], "bf16");
  EXPECT_EQ(decode["share_of"], "read_gbps");
  EXPECT_NEAR(decode["gbps"].get<double>() * decode["ms"].get<double>(), 2.0 * 2 * 2 * 1024 * 32 * 2 / 1e6, 1e-9);
  for (const auto& result : object["results"]) EXPECT_GT(result["share"], 0);
}

TEST_F(Bench, PrintsALineAShapeAndThreadCount) {
  write_shapes(R"([{"name": "mine", "shape": [1, 1, 1, 8, 8, 8]}])");
  const Outcome outcome = bench({"--threads", "2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1,1,1,8,8,8"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("% of peak"), std::string::npos) << outcome.out;
}

TEST_F(Bench, RefusesWhatItCantMeasure) {
  const std::pair<const char*, const char*> bad[] = {
      {"no JSON", "is no JSON list"},
      {"[]", "is no JSON list"},
      {"[3]", "entry 0: is no object"},
      {R"([{"dtype": "f32"}])", "has no \"shape\""},
      {R"([{"shape": [1, 1, 1, 8, 8]}])", "a list of six"},
      {R"([{"shape": [1, 1, 1, 0, 8, 8]}])", "whole numbers from 1"},
      {R"([{"shape": [1, 3, 2, 8, 8, 8]}])", "multiple of key/value heads"},
      {R"([{"shape": [1, 1, 1, 8, 8, 8], "dtype": "int8"}])", "dtype \"int8\" is none"},
      {R"([{"shape": [1, 1, 1, 8, 8, 8], "casual": true}])", "\"casual\""},
      {R"([{"shape": [1000000, 1000, 1000, 1000000, 1000000, 128]}])", "memory"},
  };
  for (const auto& [text, sentence] : bad) {
    write_shapes(text);
    const Outcome outcome = bench();
    EXPECT_EQ(outcome.exit_code, 2) << text;
    EXPECT_EQ(outcome.out, "") << text;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << text << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(attn({"bench", "--shapes", "missing.json"}).exit_code, 2);
  EXPECT_EQ(attn({"bench", "--seconds", "-1"}).exit_code, 2);
  EXPECT_EQ(attn({"bench", "--threads", "0"}).exit_code, 2);
}

TEST_F(Bench, HasNoPeakWithoutASimdTarget) {
  ASSERT_EQ(setenv("ATTN_ISA", "scalar", 1), 0);
  const Outcome outcome = attn({"bench"});
  unsetenv("ATTN_ISA");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("isa: scalar"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace attn::cli

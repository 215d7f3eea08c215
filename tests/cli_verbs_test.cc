// Help, info and cost: what they print, and that what they print is true.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "attn/version.h"
#include "tests/cli_program.h"

namespace attn::cli {
namespace {

class Verbs : public CliTest {
 protected:
  nlohmann::json json_of(const std::vector<std::string>& arguments) const {
    const Outcome outcome = attn(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(Verbs, AloneTheProgramPrintsItsHelp) {
  const Outcome alone = attn({});
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_EQ(alone.out, attn({"--help"}).out);
  for (const char* verb : {"explain", "run", "cost", "bench", "info"})
    EXPECT_NE(alone.out.find(verb), std::string::npos) << verb;
}

TEST_F(Verbs, TheVersion) { EXPECT_EQ(attn({"--version"}).out, std::string("attn ") + kVersion + "\n"); }

// Every help ends in a command that runs as it is printed, from the project's directory.
TEST_F(Verbs, TheExamplesInTheHelpRun) {
  std::filesystem::create_directory(path("bin"));
  std::filesystem::create_symlink(ATTN_PROGRAM, path("bin/attn"));
  std::filesystem::create_symlink(ATTN_SOURCE_DIR "/examples", path("examples"));
  const std::string search = "PATH=" + path("bin").string() + ":$PATH; ";
  for (const std::vector<std::string>& help : std::vector<std::vector<std::string>>{{"--help"},
                                                                                    {"explain", "--help"},
                                                                                    {"run", "--help"},
                                                                                    {"cost", "--help"},
                                                                                    {"bench", "--help"},
                                                                                    {"info", "--help"}}) {
    SCOPED_TRACE(help.front());
    const std::string text = attn(help).out;
    const std::size_t heading = text.find("Example:\n");
    ASSERT_NE(heading, std::string::npos) << text;
    const Outcome outcome = execute({"sh", "-c", search + text.substr(heading + 9)});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out, "");
  }
}

// The parser counts bytes where it lines descriptions up, so what stands in front of them is ASCII.
TEST_F(Verbs, DescriptionsInTheHelpAlign) {
  for (const std::string verb : {"explain", "run", "cost", "bench", "info"}) {
    std::istringstream lines(attn({verb, "--help"}).out);
    std::string line;
    while (std::getline(lines, line)) {
      if (!line.starts_with("  -") || line.size() < 31) continue;
      EXPECT_EQ(line[29], ' ') << line;
      EXPECT_NE(line[30], ' ') << line;
    }
  }
  const std::string help = attn({"explain", "--help"}).out;
  EXPECT_NE(help.find("--set TEXT  "), std::string::npos) << help;
}

TEST_F(Verbs, Info) {
  const auto info = json_of({"info", "--json"});
  EXPECT_EQ(info["version"], kVersion);
  EXPECT_GE(info["threads"], 1);
  const auto isas = info["isas"].get<std::vector<std::string>>();
  EXPECT_NE(std::find(isas.begin(), isas.end(), "scalar"), isas.end());
  EXPECT_NE(std::find(isas.begin(), isas.end(), info["isa"]), isas.end());
  EXPECT_NE(attn({"info"}).out.find(std::string(info["isa"]) + " (runs)"), std::string::npos);
}

TEST_F(Verbs, InfoShowsAForcedTarget) {
  ASSERT_EQ(setenv("ATTN_ISA", "scalar", 1), 0);
  EXPECT_EQ(json_of({"info", "--json"})["isa"], "scalar");
  ASSERT_EQ(unsetenv("ATTN_ISA"), 0);
}

TEST_F(Verbs, CostOfOneHead) {
  const auto cost = json_of({"cost", "-n", "1000", "--head-dim", "64", "--json"});
  EXPECT_EQ(cost["scores"], 1000000);
  EXPECT_EQ(cost["flops"], 1000000 * 4 * 64);
  EXPECT_EQ(cost["table_bytes"], 4000000);
  EXPECT_EQ(cost["kv_cache_bytes"], 2 * 1000 * 64 * 4);
  EXPECT_GT(cost["predicted_seconds"], 0.0);
  EXPECT_NEAR(cost["predicted_seconds"], cost["flops"].get<double>() / cost["peak_gflops"].get<double>() / 1e9,
              1e-12);
}

TEST_F(Verbs, CostOfAModel) {
  const auto cost = json_of({"cost", "-n", "100000", "--heads", "32", "--kv-heads", "8", "--head-dim", "128",
                             "--layers", "32", "--batch", "2", "--cache-type", "bf16", "--json"});
  EXPECT_EQ(cost["scores"].get<double>(), 1e10 * 32 * 32 * 2);
  EXPECT_EQ(cost["kv_cache_bytes"].get<double>(), 2.0 * 100000 * 8 * 128 * 32 * 2 * 2);
  EXPECT_EQ(json_of({"cost", "-n", "1000", "--causal", "--json"})["scores"], 500500);
}

TEST_F(Verbs, CostOfAbsurdSizesIsANumber) {
  const std::string most = "9223372036854775807";
  const auto cost = json_of(
      {"cost", "-n", most, "--heads", most, "--layers", most, "--batch", most, "--head-dim", most, "--json"});
  EXPECT_GT(cost["scores"].get<double>(), 1e70);
  EXPECT_EQ(attn({"cost", "-n", most}).exit_code, 0);
}

TEST_F(Verbs, CostSaysItsFormulas) {
  const std::string text = attn({"cost", "-n", "100000"}).out;
  EXPECT_NE(text.find("10,000,000,000"), std::string::npos) << text;
  for (const char* formula : {"n²", "4·D", "4·n²", "2·n·D"})
    EXPECT_NE(text.find(formula), std::string::npos) << formula;
}

}  // namespace
}  // namespace attn::cli

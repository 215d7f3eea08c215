// attn explain, driven from outside: what-ifs, formats, files and refusals.
#include <nlohmann/json.hpp>

#include "tests/cli_program.h"

namespace attn::cli {
namespace {

class Explain : public CliTest {
 protected:
  Outcome explain(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "explain");
    return attn(std::move(arguments));
  }

  nlohmann::json json_of(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const Outcome outcome = explain(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out);
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& piece) const {
    const auto before = files();
    const Outcome outcome = explain(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments.front();
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
    EXPECT_EQ(files(), before);
  }

  void write_text(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
};

TEST_F(Explain, EndsWithTheResult) {
  const Outcome outcome = explain({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.ends_with("  order    (3, 0)\n  4471     (1.5, 2)\n  shipped  (2.18, 0.82)\n"));
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
}

TEST_F(Explain, WhatIf) {
  EXPECT_NEAR(json_of({"--set", "k[4471]=2,0"})["weights"][1][0].get<double>(), 0.6697615493266569, 1e-15);
  EXPECT_NEAR(json_of({"--no-mask"})["weights"][0][1].get<double>(), 0.050132993657320254, 1e-15);
  EXPECT_NEAR(json_of({"--no-scale"})["weights"][2][0].get<double>(), 0.7869860421615984, 1e-15);
  const auto plain = json_of({"--no-mask"}), shuffled = json_of({"--no-mask", "--shuffle", "2,0,1"});
  for (std::size_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(shuffled["out"][0][c].get<double>(), plain["out"][2][c].get<double>(), 1e-15);
    EXPECT_NEAR(shuffled["out"][1][c].get<double>(), plain["out"][0][c].get<double>(), 1e-15);
  }
  EXPECT_EQ(json_of({"--tiles", "1"})["tiles"][2].size(), 3U);
  EXPECT_EQ(json_of({"--heads", "2"})["heads"], 2);
  EXPECT_EQ(json_of({"--set", "v[0]=9,9", "--set", "v[1]=8,8"})["out"][1][0], 8.5);
}

TEST_F(Explain, ThroughACacheGivesTheSameOutputs) {
  const auto json = json_of({"--cache"});
  ASSERT_EQ(json["steps"].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& step = json["steps"][i];
    EXPECT_EQ(step["token"], i);
    EXPECT_EQ(step["appended"]["k"], json["k"][i]);
    EXPECT_EQ(step["appended"]["v"], json["v"][i]);
    EXPECT_EQ(step["keys"].size(), i + 1);
    EXPECT_EQ(step["out"], json["out"][i]);
  }
  EXPECT_NE(explain({"--cache"}).out.find("Step 8: the same, token by token, through a KV cache"),
            std::string::npos);
  const auto heads = json_of({"--cache", "--heads", "2", "--window", "1,0", "--sink-tokens", "1"});
  ASSERT_EQ(heads["steps"].size(), 2U);
  EXPECT_EQ(heads["steps"][1][2]["out"][0], heads["out"][2][1]);
  write_text("late.json", R"({"q": [[1], [1]], "k": [[1], [2]], "v": [[1], [5]], "cache": true})");
  expect_refused({"late.json"}, "late.json: cache: 0 sees a later token");
  write_text("short.json",
             R"({"q": [[1], [1]], "k": [[1], [2]], "v": [[1], [5]], "causal": "top-left", "lengths": [1]})");
  EXPECT_EQ(json_of({"short.json", "--cache"})["steps"][1]["keys"], nlohmann::json({0}));
}

TEST_F(Explain, ReadsSpecificationsAndFlagsWin) {
  write_text("spec.json", R"({"q": [[1], [1]], "k": [[1], [2]], "v": [[1], [5]], "causal": true, "scale": 0})");
  EXPECT_EQ(json_of({"spec.json"})["out"][1][0], 3.0);
  EXPECT_EQ(json_of({"spec.json", "--no-mask"})["out"][0][0], 3.0);
  EXPECT_EQ(json_of({"spec.json", "--causal=1", "--scale", "1"})["masked"][0][1], 2.0);
  EXPECT_EQ(json_of({"--causal=top-left", "spec.json", "--lengths", "1"})["out"][1][0], 1.0);
}

TEST_F(Explain, MakesAMistakeBesideTheRightNumbers) {
  // Without the scale, as --no-scale works it.
  const auto mistaken = json_of({"--mistake", "scale-missing"}), unscaled = json_of({"--no-scale"});
  EXPECT_EQ(mistaken["mistake"]["id"], "scale-missing");
  EXPECT_EQ(mistaken["mistake"]["shows"], true);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j)
      EXPECT_NEAR(mistaken["mistaken_weights"][i][j].get<double>(), unscaled["weights"][i][j].get<double>(), 1e-15);
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(mistaken["mistaken_out"][i][c].get<double>(), unscaled["out"][i][c].get<double>(), 1e-15);
  }
  EXPECT_EQ(mistaken["weights"], json_of({})["weights"]);

  const Outcome told = explain({"--mistake", "scale-missing"});
  EXPECT_NE(told.out.find("shipped  0.787*  0.107*  0.107*"), std::string::npos) << told.out;
  EXPECT_EQ(told.out.find("1*"), std::string::npos);  // the first row stays right, and has no mark
  EXPECT_NE(
      explain({"--mistake", "causal-missing", "--format", "markdown"}).out.find("# causal-missing: no causal mask"),
      std::string::npos);
  // What the example can't show is shown on a case of the probe.
  const Outcome other = explain({"--mistake", "rope-layout"});
  EXPECT_NE(other.out.find("The worked example can't show it. The probe's case “rope” can"), std::string::npos);
  EXPECT_EQ(json_of({"--mistake", "rope-layout"})["mistake"]["shows"], false);
  EXPECT_NE(explain({"--mistake", "dropout-at-eval"}).out.find("It makes no fixed numbers"), std::string::npos);
}

TEST_F(Explain, WritesFilesWhole) {
  write_text("out.tex", "old");
  EXPECT_EQ(explain({"--format", "latex", "-o", "out.tex"}).out, "");
  EXPECT_TRUE(contents_of(path("out.tex")).ends_with("\\end{document}\n"));
  EXPECT_EQ(files(), std::set<std::string>{"out.tex"});
  EXPECT_EQ(explain({"--format", "markdown", "-o", "-"}).out, explain({"--format", "markdown"}).out);
}

TEST_F(Explain, RefusesByNameWhatIsNotBuilt) {
  expect_refused({"--cache", "--no-mask"}, "--cache: order sees a later token");
  expect_refused({"--backward"}, "--backward is not available in this version");
  expect_refused({"--mistake", "no-scale"}, "--mistake: \"no-scale\" is none; give all, or one of scale-missing");
  expect_refused({"--mistake", "all", "--json"}, "--mistake: all is a catalogue to read; give --format text");
}

TEST_F(Explain, RefusesWhatDoesNotFit) {
  write_text("bad.json", "{\"q\": [[1,2],[3]], \"k\": [[1,2],[3,4]], \"v\": [[1],[2]]}");
  write_text("unknown.json", "{\"qq\": 1}");
  expect_refused({"bad.json", "-o", "out.txt"}, "bad.json: q: row 1 has 1 number, but row 0 has 2");
  expect_refused({"unknown.json"}, "\"qq\" is no key");
  expect_refused({"bad.json", "-o", "bad.json"}, "is the specification");
  expect_refused({"missing.json"}, "missing.json: there is no such file; check the path");
  expect_refused({"--set", "k[0]=1,2", "k[1]=1,2"}, "or write --set in front of each change");
  expect_refused({"."}, "can't be read");
  expect_refused({"/dev/zero"}, "larger than");
  expect_refused({"-o", "no/such/place"}, "-o: no/such/place: there is no directory no/such; make it first");
  expect_refused({"-o", "/dev/null"}, "not a file");
  expect_refused({"--json", "-o", "-"}, "--json");
  expect_refused({"--json", "--format", "text"}, "--format text");
  expect_refused({"--format", "pdf"}, "\"pdf\" is none");
  expect_refused({"--tiles", "0"}, "--tiles");
  expect_refused({"--heads", "3"}, "heads: 3");
  expect_refused({"--set", "k[foo]=1,2"}, "\"foo\"");
  expect_refused({"--set", "k[4471]=1"}, "--set k[4471]=1: 1 number");
  expect_refused({"--set", "k[4471]=2,0", "--set", "k[4471]=3,0"},
                 "row 1 of k is set by --set k[4471]=2,0 already");
  expect_refused({"--shuffle", "0,0,1"}, "--shuffle 0,0,1: row 0 comes twice");
  expect_refused({"--sink-tokens", "1"}, "--sink-tokens: 1 given without a window");
  expect_refused({"--no-mask", "--align", "1"}, "--align: 1 given, but nothing asks");
  expect_refused({"--no-mask", "--causal"}, "--no-mask");
  expect_refused({"--no-scale", "--scale", "2"}, "--no-scale");
  expect_refused({"--scale", "nan"}, "--scale");
  expect_refused({"--lengths", "4"}, "4");
}

TEST_F(Explain, NamesTheFileOfAnOption) {
  const std::string matrices = R"("q": [[1], [1]], "k": [[1], [2]], "v": [[1], [5]])";
  const auto expect_named = [&](const std::string& option, const std::string& sentence) {
    write_text("spec.json", "{" + matrices + ", " + option + "}");
    expect_refused({"spec.json"}, sentence);
  };
  expect_named(R"("scale": "nan")", "spec.json: scale: \"nan\"");
  expect_named(R"("heads": 2)", "spec.json: heads: 2");
  expect_named(R"("tiles": 0)", "spec.json: tiles: \"0\"");
  expect_named(R"("window": [-1, 0])", "spec.json: window: \"-1\"");
  expect_named(R"("sink-tokens": 1)", "spec.json: sink-tokens: 1");
  expect_named(R"("alibi": true, "lengths": [1])", "spec.json: alibi: 2 queries and 1 key");
  expect_refused({"spec.json", "--scale", "x"}, "explain: --scale: \"x\"");
}

// What --no-mask takes away must not leave its alignment behind.
TEST_F(Explain, NoMaskIgnoresThePositionsOfTheFile) {
  write_text("spec.json",
             R"({"q": [[1], [1]], "k": [[1], [2]], "v": [[1], [5]], "causal": true, "align": "top-left"})");
  EXPECT_EQ(explain({"spec.json", "--no-mask"}).exit_code, 0);
}

TEST_F(Explain, PutsNoRawBytesOnATerminal) {
  write_text("spec.json", "{\"\xFF\x1B[2J\": 1}");
  const std::string said = explain({"spec.json"}).err + explain({"\x1B]0;x\x07\xC2\x9B\xE2\x82.json"}).err;
  for (const char byte : said) {
    EXPECT_TRUE((byte >= ' ' && byte <= '~') || byte == '\n') << static_cast<int>(byte);
  }
  EXPECT_NE(explain({"größe.json"}).err.find("größe.json: "), std::string::npos);
}

}  // namespace
}  // namespace attn::cli

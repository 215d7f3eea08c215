// attn explain --format html: the page, with the lesson that was asked for.
#include <nlohmann/json.hpp>

#include "explain/json.h"
#include "explain/page_problem.h"
#include "tests/cli_program.h"

namespace attn::cli {
namespace {

using nlohmann::json;

class Page : public CliTest {
 protected:
  void SetUp() override {
    if (!ATTN_HAS_PAGE) GTEST_SKIP() << "this build has no page (ATTN_BUILD_PAGE)";
  }

  void write_text(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  Outcome explain(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "explain");
    return attn(arguments);
  }

  // What the page is given to begin with.
  json given(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--format", "html"});
    const Outcome outcome = explain(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string open = R"(<script id="given" type="application/json">)";
    const std::size_t begin = outcome.out.find(open) + open.size();
    return json::parse(outcome.out.substr(begin, outcome.out.find("</script>", begin) - begin))["specification"];
  }

  // The numbers that the page works out are those of the command line.
  void expect_same_numbers(const std::vector<std::string>& arguments) {
    explain::PageProblem page;
    const Status read = explain::read_page_problem(given(arguments).dump(), &page);
    ASSERT_TRUE(read.ok()) << read.message();
    reference::Trace trace;
    ASSERT_TRUE(reference::trace(page.problem, &trace).ok());
    std::vector<std::string> direct = arguments;
    direct.emplace_back("--json");
    const Outcome expected = explain(direct);
    EXPECT_EQ(explain::as_json(trace), expected.out) << expected.err;
  }
};

TEST_F(Page, IsGivenTheWorkedExample) {
  const json specification = given({});
  EXPECT_EQ(specification["tokens"], json({"order", "4471", "shipped"}));
  EXPECT_EQ(specification["causal"], true);
  EXPECT_TRUE(specification.contains("x") && specification.contains("wq"));
  EXPECT_FALSE(specification.contains("q") || specification.contains("replaced") ||
               specification.contains("mistake"));
}

TEST_F(Page, IsGivenOptionsAsNumbers) {
  const json specification =
      given({"--causal=top-left", "--scale", "0.50", "--window", "2,inf", "--heads", "2", "--tiles", "1", "--cache",
             "--alibi", "--set", "k[4471]=2,0", "--mistake", "scale-missing"});
  const json replaced = {{{"matrix", "k"}, {"row", 1}, {"values", {2, 0}}}};
  const json expected = {{"causal", true}, {"scale", 0.5},         {"window", {2, nullptr}},
                         {"heads", 2},     {"tiles", 1},           {"cache", true},
                         {"alibi", true},  {"replaced", replaced}, {"mistake", "scale-missing"}};
  for (const auto& [name, value] : expected.items()) EXPECT_EQ(specification[name], value) << name;
  EXPECT_EQ(given({"--no-scale"})["scale"], 1);
  EXPECT_FALSE(given({"--no-mask"}).contains("causal"));
}

TEST_F(Page, LeadsToTheSameNumbers) {
  write_text("spec.json",
             R"({"tokens": ["a", "0", "b"], "q": [[1, 0], [0, 1], [1, 1]], "k": [[1, 1], [0, 2], [3, 0]],
                              "v": [[1], [2], [4]], "window": [1, 0], "scale": 0.7})");
  expect_same_numbers({});
  expect_same_numbers({"--no-mask", "--no-scale", "--tiles", "2"});
  expect_same_numbers({"--set", "k[4471]=2,0", "--set", "v[0]=9,9", "--shuffle", "2,0,1", "--cache"});
  expect_same_numbers({"--set", "x[2]=1,2,3,4", "--set", "wq[1]=1,2", "--shuffle", "2,0,1", "--no-mask"});
  expect_same_numbers({"spec.json", "--softcap", "2"});
  // Row 2 comes to where a token's name says 0.
  expect_same_numbers({"spec.json", "--set", "k[2]=5,5", "--shuffle", "2,0,1"});
  expect_same_numbers({"spec.json", "--set", "k[0]=5,5", "--shuffle", "2,0,1"});
  expect_same_numbers({"--alibi", "--heads", "2"});
  expect_same_numbers({"--causal=-1", "--sink-tokens", "1", "--window", "0"});
  expect_same_numbers({"--causal=bottom-right", "--lengths", "2"});
}

TEST_F(Page, NoTextEndsItsScript) {
  write_text("spec.json",
             R"({"tokens": ["</script>", "<!--"], "q": [[1], [1]], "k": [[1], [2]], "v": [[1], [5]]})");
  EXPECT_EQ(given({"spec.json"})["tokens"], json({"</script>", "<!--"}));
}

TEST_F(Page, IsWrittenAsOneFile) {
  EXPECT_EQ(explain({"--format", "html", "-o", "lesson.html"}).out, "");
  EXPECT_EQ(files(), std::set<std::string>{"lesson.html"});
  EXPECT_EQ(contents_of(path("lesson.html")), explain({"--format", "html"}).out);
}

TEST_F(Page, IsWhatAFileOfThatNameGets) {
  EXPECT_EQ(explain({"-o", "lesson.html"}).exit_code, 0);
  EXPECT_EQ(contents_of(path("lesson.html")), explain({"--format", "html"}).out);
  EXPECT_EQ(explain({"-o", "lesson.md"}).exit_code, 0);
  EXPECT_EQ(contents_of(path("lesson.md")), explain({"--format", "markdown"}).out);
  EXPECT_EQ(explain({"-o", "plain.html", "--format", "text"}).exit_code, 0);
  EXPECT_EQ(contents_of(path("plain.html")), explain({}).out);
}

TEST_F(Page, RefusesWhatItCanNotShow) {
  write("mask.npy", {3, 3}, std::vector<float>(9, 0.0F));
  write_text("spec.json", R"({"q": [[1]], "k": [[1]], "v": [[1]], "sinks": "sinks.npy"})");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& piece) {
    arguments.insert(arguments.end(), {"--format", "html"});
    const Outcome outcome = explain(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
  };
  refused({"--mask", "mask.npy"}, "--mask: mask.npy, but the page of --format html shows no files yet");
  refused({"spec.json"}, "spec.json: sinks: sinks.npy, but the page");
  refused({"--mistake", "all"}, "--mistake: all is a catalogue to read; give --format text");
  refused({"--json"}, "--json: --format html is given as well");
  refused({"--heads", "3"}, "--heads: 3");
}

using NoPage = CliTest;

TEST_F(NoPage, IsRefusedByName) {
  if (ATTN_HAS_PAGE) GTEST_SKIP() << "this build has the page";
  const Outcome outcome = attn({"explain", "--format", "html", "-o", "x.html"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "attn explain: --format html: this build has no page; ./run explore builds it\n");
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace attn::cli

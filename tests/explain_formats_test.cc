// Each format is well formed, whatever the tokens are called.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "explain/example.h"
#include "explain/json.h"
#include "explain/latex_symbols.h"
#include "explain/lesson.h"
#include "explain/render.h"

namespace attn::explain {
namespace {

using reference::Problem;
using reference::Trace;

// A problem with every kind of block in its lesson, and names that each format might take for markup.
Problem hard_problem() {
  Problem problem = worked_example();
  problem.tokens = {R"(a|b_{c}$%#&~^\)", "[CLS] *x* `y` <z>", "naïve"};
  problem.tile = 2;
  problem.heads = 2;
  problem.options.softcap = 3;
  return problem;
}

Trace work(const Problem& problem) {
  Trace trace;
  const Status status = reference::trace(problem, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

Document document_of(const Problem& problem) { return lesson(problem, work(problem)); }

// Braces balance, environments nest, $ comes in pairs in each line. Escaped characters do not count.
void expect_balanced(const std::string& latex) {
  int braces = 0, dollars = 0;
  std::vector<std::string> environments;
  for (std::size_t n = 0; n < latex.size(); ++n) {
    if (latex[n] == '\\') {
      const std::string rest = latex.substr(n, 40);
      std::smatch name;
      if (std::regex_search(rest, name, std::regex(R"(^\\begin\{([a-z*]+)\})"))) environments.push_back(name[1]);
      if (std::regex_search(rest, name, std::regex(R"(^\\end\{([a-z*]+)\})"))) {
        ASSERT_FALSE(environments.empty());
        EXPECT_EQ(environments.back(), name[1]);
        environments.pop_back();
      }
      if (rest.starts_with("\\[")) environments.emplace_back("\\[");
      if (rest.starts_with("\\]")) {
        ASSERT_FALSE(environments.empty());
        EXPECT_EQ(environments.back(), "\\[");
        environments.pop_back();
      }
      ++n;
      continue;
    }
    braces += latex[n] == '{' ? 1 : latex[n] == '}' ? -1 : 0;
    dollars += latex[n] == '$' ? 1 : 0;
    ASSERT_GE(braces, 0) << latex.substr(0, n);
    if (latex[n] == '\n') {
      EXPECT_EQ(dollars % 2, 0) << latex.substr(0, n);
    }
  }
  EXPECT_EQ(braces, 0);
  EXPECT_TRUE(environments.empty());
}

TEST(Latex, IsBalanced) {
  expect_balanced(as_latex(document_of(worked_example())));
  expect_balanced(as_latex(document_of(hard_problem())));
}

TEST(Latex, NeedsAmsmathAloneAndNoUnicode) {
  const std::string latex = as_latex(document_of(worked_example()));
  const std::regex package(R"(\\usepackage(\[[^\]]*\])?\{([^}]*)\})");
  std::vector<std::string> packages;
  for (std::sregex_iterator found(latex.begin(), latex.end(), package), end; found != end; ++found) {
    packages.push_back((*found)[2]);
  }
  EXPECT_EQ(packages, std::vector<std::string>{"amsmath"});
  for (const char byte : latex) ASSERT_LT(static_cast<unsigned char>(byte), 0x80U);

  // Every command is one of LaTeX's own or amsmath's.
  const std::vector<std::string> known = {"documentclass", "usepackage", "allowdisplaybreaks",
                                          "setlength",     "parindent",  "begin",
                                          "end",           "section",    "subsection",
                                          "text",          "emph",       "quad",
                                          "cdot",          "infty",      "to",
                                          "ldots",         "sqrt",       "exp",
                                          "tanh",          "max",        "hline"};
  const std::regex command(R"(\\([a-zA-Z]+))");
  for (std::sregex_iterator found(latex.begin(), latex.end(), command), end; found != end; ++found) {
    EXPECT_NE(std::find(known.begin(), known.end(), (*found)[1]), known.end()) << found->str();
  }
}

TEST(Latex, HoldsTheNumbers) {
  const std::string latex = as_latex(document_of(worked_example()));
  EXPECT_NE(latex.find(R"((2,\ 1)\cdot (2,\ 1) = 2\cdot 2 + 1\cdot 1 = 5)"), std::string::npos);
  EXPECT_NE(latex.find(R"(\text{shipped} &\quad 0.673\ 0.164\ 0.164)"), std::string::npos);
  EXPECT_NE(latex.find(R"(\text{order} & 3.536 & -\infty  & -\infty  \\)"), std::string::npos);
}

TEST(Latex, EscapesText) {
  EXPECT_EQ(latex_text("50% of a_b & {c} #1 $2"), R"(50\% of a\_b \& $\{$c$\}$ \#1 \$2)");
  EXPECT_EQ(latex_text(R"(\~^)"), R"(\textbackslash{}\textasciitilde{}\textasciicircum{})");
  EXPECT_EQ(latex_text("N² and √128 and −∞"), R"(N$^{2}$ and $\sqrt{128}$ and $-$$\infty $)");
  EXPECT_EQ(latex_math("1.67·10⁻⁵"), R"(1.67\cdot 10^{-5})");
  EXPECT_EQ(latex_math("exp(1 − 2) = x"), R"(\exp(1 - 2) = x)");
}

TEST(Markdown, TablesHaveEquallyManyCellsInEachRow) {
  const std::string markdown = as_markdown(document_of(hard_problem()));
  std::istringstream lines(markdown);
  std::string line;
  std::size_t cells = 0;
  int tables = 0;
  while (std::getline(lines, line)) {
    if (!line.starts_with('|')) {
      cells = 0;
      continue;
    }
    std::size_t bars = 0;
    for (std::size_t n = 0; n < line.size(); ++n) bars += line[n] == '|' && (n == 0 || line[n - 1] != '\\') ? 1 : 0;
    if (cells == 0) ++tables;
    if (cells != 0) {
      EXPECT_EQ(bars, cells) << line;
    }
    cells = bars;
  }
  EXPECT_GT(tables, 10);
  EXPECT_NE(markdown.find("\\[CLS\\] \\*x\\* \\`y\\` \\<z\\>"), std::string::npos);
}

TEST(Markdown, HoldsTheNumbers) {
  const std::string markdown = as_markdown(document_of(worked_example()));
  EXPECT_TRUE(markdown.starts_with("# Attention, worked by hand\n"));
  EXPECT_NE(markdown.find("| shipped | 0.673 | 0.164 | 0.164 |"), std::string::npos);
  EXPECT_NE(markdown.find("    order → order      (2, 1)·(2, 1) = 2·2 + 1·1 = 5"), std::string::npos);
}

TEST(JsonFormat, Parses) {
  const auto json = nlohmann::json::parse(as_json(work(hard_problem())));
  for (const char* key : {"tokens", "x", "wq", "wk", "wv", "q", "k", "v", "scores", "scaled", "softcapped",
                          "masked", "weights", "out", "scale", "tiles", "lse"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_FALSE(json.contains("biased"));
  EXPECT_EQ(json["tokens"][0], hard_problem().tokens[0]);
  EXPECT_EQ(json["weights"].size(), 2U) << "a list of matrices, one a head";
  EXPECT_EQ(json["weights"][1].size(), 3U);
  EXPECT_EQ(json["masked"][0][0][1], "-inf");
}

TEST(JsonFormat, TilesOfOneHeadAreAListAQuery) {
  Problem problem = worked_example();
  problem.tile = 2;
  const auto tiles = nlohmann::json::parse(as_json(work(problem)))["tiles"];
  ASSERT_EQ(tiles.size(), 3U);
  EXPECT_EQ(tiles[2].size(), 2U);
  EXPECT_EQ(tiles[2][1]["keys"], nlohmann::json({2}));
  for (const char* key : {"keys", "max", "sum", "rescale"}) EXPECT_TRUE(tiles[0][0].contains(key)) << key;
}

TEST(JsonFormat, WritesWhatIsNotFiniteAsText) {
  Problem problem;
  problem.tokens = {"a", "b"};
  problem.q = {{1e300}, {0}};
  problem.k = {{1e300}, {1}};
  problem.v = {{1}, {2}};
  const auto json = nlohmann::json::parse(as_json(work(problem)));
  EXPECT_EQ(json["scores"][0][0], "inf");
  EXPECT_EQ(json["out"][0][0], "nan");
  EXPECT_EQ(json["out"][1][0], 1.5);
}

}  // namespace
}  // namespace attn::explain

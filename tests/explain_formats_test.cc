// Each format is well formed, whatever the tokens are called.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
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

// The letters of the command whose backslash is at `position`, and what stands in the braces behind it.
std::string command_at(const std::string& latex, std::size_t position) {
  std::size_t end = position + 1;
  while (end < latex.size() && std::isalpha(static_cast<unsigned char>(latex[end])) != 0) ++end;
  return latex.substr(position + 1, end - position - 1);
}

std::string argument_of(const std::string& latex, std::size_t position, const std::string& command) {
  const std::size_t begin = position + command.size() + 2;
  return latex.substr(begin, latex.find('}', begin) - begin);
}

// Where each command begins. The character behind a backslash belongs to it, a second backslash too.
std::vector<std::size_t> commands_of(const std::string& latex) {
  std::vector<std::size_t> positions;
  for (std::size_t n = latex.find('\\'); n < latex.size(); n = latex.find('\\', n + 2)) positions.push_back(n);
  return positions;
}

// Environments, \[ … \] included, close in the order in which they opened.
void expect_nested(const std::string& latex) {
  std::vector<std::string> open;
  for (const std::size_t position : commands_of(latex)) {
    const std::string command = command_at(latex, position);
    const char next = latex[position + 1];
    if (command == "begin") open.push_back(argument_of(latex, position, command));
    if (next == '[') open.emplace_back("[");
    if (command != "end" && next != ']') continue;
    ASSERT_FALSE(open.empty());
    EXPECT_EQ(open.back(), next == ']' ? "[" : argument_of(latex, position, command));
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

// Braces balance, environments nest, $ comes in pairs in each line. Escaped characters do not count.
void expect_balanced(const std::string& latex) {
  expect_nested(latex);
  int braces = 0, dollars = 0;
  for (std::size_t n = 0; n < latex.size(); ++n) {
    if (latex[n] == '\\') {
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
}

TEST(Latex, IsBalanced) {
  expect_balanced(as_latex(document_of(worked_example())));
  expect_balanced(as_latex(document_of(hard_problem())));
}

TEST(Latex, NeedsAmsmathAloneAndNoUnicode) {
  const std::string latex = as_latex(document_of(worked_example()));
  for (const char byte : latex) ASSERT_LT(static_cast<unsigned char>(byte), 0x80U);

  // Every command is one of LaTeX's own or amsmath's.
  const std::set<std::string> known = {"documentclass", "usepackage", "allowdisplaybreaks",
                                       "setlength",     "parindent",  "begin",
                                       "end",           "section",    "subsection",
                                       "text",          "emph",       "quad",
                                       "cdot",          "infty",      "to",
                                       "ldots",         "sqrt",       "exp",
                                       "tanh",          "max",        "hline"};
  std::vector<std::string> packages;
  for (const std::size_t position : commands_of(latex)) {
    const std::string command = command_at(latex, position);
    if (command == "usepackage") packages.push_back(argument_of(latex, position, command));
    EXPECT_TRUE(command.empty() || known.contains(command)) << command;
  }
  EXPECT_EQ(packages, std::vector<std::string>{"amsmath"});
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

TEST(Markdown, SkipsNoLevelOfHeadings) {
  for (const Problem& problem : {worked_example(), hard_problem()}) {
    std::istringstream lines(as_markdown(document_of(problem)));
    std::string line;
    std::size_t above = 0, deepest = 0;
    while (std::getline(lines, line)) {
      const std::size_t level = line.find_first_not_of('#');
      if (level == 0 || level == std::string::npos) continue;
      EXPECT_LE(level, above + 1) << line;
      above = level;
      deepest = std::max(deepest, level);
    }
    EXPECT_EQ(deepest, problem.heads > 1 ? 3U : 2U);
  }
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

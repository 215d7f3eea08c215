// Problems as the page holds them: written and read again they are the same; what is none is refused by name.
#include "explain/page_problem.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "attn/options.h"
#include "explain/example.h"
#include "explain/json.h"

namespace attn::explain {
namespace {

using nlohmann::json;
using reference::Problem;

std::string numbers_of(const Problem& problem) {
  reference::Trace trace;
  const Status status = reference::trace(problem, &trace);
  return status.ok() ? as_json(trace) : status.message();
}

// What the page makes of a problem has the numbers of the problem itself.
void expect_same(const Problem& problem) {
  const json written = page_problem_json(problem, "");
  PageProblem page;
  const Status status = read_page_problem(written.dump(), &page);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(numbers_of(page.problem), numbers_of(problem)) << written;
  EXPECT_EQ(page_problem_json(page.problem, ""), written);
}

Problem with(const std::function<void(Problem*)>& change) {
  Problem problem = worked_example();
  problem.options = {};
  change(&problem);
  return problem;
}

TEST(PageProblem, KeepsEveryOption) {
  const std::vector<std::int64_t> length = {2};
  const std::vector<float> slopes = alibi_slopes(2);
  expect_same(with([](Problem*) {}));
  expect_same(with([](Problem* p) { p->options.causal = true; }));
  expect_same(with([](Problem* p) { p->options.scale = 0.1, p->options.softcap = 1.0 / 3; }));
  expect_same(with([](Problem* p) { p->options.window_left = 0; }));
  expect_same(with([](Problem* p) { p->options.window_right = 1, p->options.sink_tokens = 1; }));
  expect_same(with([](Problem* p) { p->heads = 2, p->tile = 2; }));
  expect_same(with([](Problem* p) { p->cache = true, p->options.causal = true; }));
  expect_same(with([](Problem* p) {
    p->options.causal = true;
    p->options.alignment = Alignment::offset;
    p->options.position_offset = -1;
  }));
  for (const Alignment where : {Alignment::top_left, Alignment::bottom_right}) {
    expect_same(with([&](Problem* p) {
      p->options.causal = true;
      p->options.alignment = where;
      p->options.key_lengths = length;
    }));
  }
  expect_same(with([&](Problem* p) {
    p->heads = 2;
    p->options.alibi = TensorView(slopes.data(), DType::f32, {2});
  }));
}

TEST(PageProblem, KeepsRowsThatWereReplaced) {
  const auto replace = [](Problem* problem) { problem->replaced = {{'k', 1, {2, 0}}, {'v', 0, {9, 9}}}; };
  expect_same(with(replace));
  EXPECT_EQ(page_problem_json(with(replace), "")["replaced"].size(), 2U);
  // A token's name is no row's number.
  expect_same(with([&](Problem* problem) {
    replace(problem);
    problem->tokens = {"2", "1", "0"};
  }));
  const Problem given = with([&](Problem* problem) {
    problem->q = problem->k = problem->v = {{1, 0}, {0, 1}, {1, 1}};
    problem->x = problem->wq = problem->wk = problem->wv = {};
    replace(problem);
  });
  const json written = page_problem_json(given, "scale-missing");
  EXPECT_EQ(written["k"], json({{1, 0}, {2, 0}, {1, 1}})) << "a matrix of its own is written as it is now";
  EXPECT_FALSE(written.contains("replaced"));
  EXPECT_EQ(written["mistake"], "scale-missing");
}

TEST(PageProblem, RefusesWhatIsNone) {
  json example = page_problem_json(with([](Problem*) {}), "");
  const auto refusal = [&](const std::string& key, const json& value) {
    json changed = example;
    changed[key] = value;
    PageProblem page;
    return read_page_problem(changed.dump(), &page).message();
  };
  for (const auto& [key, value, piece] : std::vector<std::tuple<std::string, json, std::string>>{
           {"causal", "top-left", "causal: not true"},
           {"scale", "0.5", "scale: not a finite number"},
           {"scale", {1}, "scale: not"},
           {"softcap", 0, "softcap: not above 0"},
           {"window", 2, "window: not [left, right]"},
           {"window", {-1, nullptr}, "window: not a whole number"},
           {"heads", 0, "heads: not a whole number from 1"},
           {"heads", 1e300, "heads: not"},
           {"tiles", 1.5, "tiles: not"},
           {"length", 4, "length: not a whole number from 0 to 3"},
           {"mistake", "none-such", "mistake: \"none-such\""},
           {"mistake", 7, "mistake: not a text"},
           {"replaced", {{{"matrix", "x"}, {"row", 0}, {"values", {1}}}}, "replaced: not a list of rows"},
           {"replaced", {{{"matrix", "k"}, {"row", 0.5}, {"values", {1, 2}}}}, "replaced: not"},
           {"replaced", {{{"matrix", "k"}, {"row", 0}, {"values", {1, "2"}}}}, "replaced: not"},
           {"replaced", 3, "replaced: not"},
           {"mask", "m.npy", "\"mask\" is an option that the page does not have"},
           {"colour", 1, "\"colour\" is no key"}}) {
    EXPECT_NE(refusal(key, value).find(piece), std::string::npos) << key << ": " << refusal(key, value);
  }
  EXPECT_EQ(refusal("causal", false), "");
  PageProblem page;
  for (const char* text : {"", "[1]", "{", "null", "3"})
    EXPECT_NE(read_page_problem(text, &page).message(), "") << text;
  const std::string deep = "{\"colour\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_NE(read_page_problem(deep, &page).message().find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace attn::explain

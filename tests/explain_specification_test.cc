// Reading specifications: what fits is taken, anything else is one sentence.
#include "explain/specification.h"

#include <gtest/gtest.h>

namespace attn::explain {
namespace {

constexpr const char* kGiven = R"("q": [[1, 0], [0, 1]], "k": [[1, 1], [0, 2]], "v": [[1], [2]])";

std::string object(const std::string& more) { return "{" + more + "}"; }

Specification read(const std::string& json) {
  Specification specification;
  const Status status = read_specification(json, &specification);
  EXPECT_TRUE(status.ok()) << status.message();
  return specification;
}

// The sentence that refuses it.
std::string refusal(const std::string& json) {
  Specification specification;
  specification.problem.tokens = {"untouched"};
  const std::string message = read_specification(json, &specification).message();
  EXPECT_NE(message, "") << json.substr(0, 200);
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_EQ(specification.problem.tokens, std::vector<std::string>{"untouched"});
  return message;
}

TEST(Specification, ReadsBothForms) {
  const Specification given = read(object(kGiven));
  EXPECT_EQ(given.problem.tokens, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(given.problem.k, (reference::Matrix{{1, 1}, {0, 2}}));
  EXPECT_TRUE(given.problem.x.empty());
  const Specification projected =
      read(R"({"tokens": ["é"], "x": [[1e-3]], "wq": [[1]], "wk": [[2]], "wv": [[-3]], "causal": true})");
  EXPECT_EQ(projected.problem.x, (reference::Matrix{{0.001}}));
  EXPECT_EQ(projected.problem.wv, (reference::Matrix{{-3}}));
  EXPECT_EQ(projected.options.at("causal"), "true");
}

TEST(Specification, WordsOptionsAsFlags) {
  const Specification read_one = read(object(std::string(kGiven) + R"(, "causal": "bottom-right", "scale": 0.5,
      "window": [2, 0], "sink-tokens": 1, "softcap": 30, "alibi": true, "lengths": [2], "heads": 2, "tiles": 1)"));
  const std::map<std::string, std::string> expected = {
      {"causal", "bottom-right"}, {"scale", "0.5"}, {"window", "2,0"}, {"sink-tokens", "1"}, {"softcap", "30"},
      {"alibi", "true"},          {"lengths", "2"}, {"heads", "2"},    {"tiles", "1"}};
  EXPECT_EQ(read_one.options, expected);
  EXPECT_TRUE(read(object(std::string(kGiven) + R"(, "causal": false, "alibi": false)")).options.empty());
}

TEST(Specification, MayHoldCommentary) {
  EXPECT_TRUE(
      read(object(std::string(kGiven) + R"(, "about": "x", "expect": {"weights": [[1]]})")).options.empty());
}

TEST(Specification, RefusesWhatItDoesNotUnderstand) {
  for (const char* json :
       {"", "[1]", "{", "nul", "{\"q\": NaN}", "{\"q\": [[1e999]]}", "\xFF", "{}", "{\"tokens\": [\"a\"]}"}) {
    refusal(json);
  }
  EXPECT_NE(refusal(object(std::string(kGiven) + R"(, "wqq": 1)")).find("\"wqq\" is no key"), std::string::npos);
  EXPECT_NE(refusal(object(std::string(kGiven) + R"(, "q": [[1]])")).find("q: given twice"), std::string::npos);
  EXPECT_NE(refusal(object(std::string(kGiven) + R"(, "x": [[1]])")).find("both x"), std::string::npos);
  EXPECT_NE(refusal(R"({"q": [[1]], "v": [[1]]})").find("k: missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"x": [[1]]})").find("wq: missing"), std::string::npos);
}

TEST(Specification, RefusesBadElements) {
  EXPECT_NE(refusal(R"({"q": [[1, "2"]], "k": [[1]], "v": [[1]]})").find("\"2\" is not a number"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"q": [1], "k": [[1]], "v": [[1]]})").find("a row is a list"), std::string::npos);
  EXPECT_NE(refusal(R"({"q": 1, "k": [[1]], "v": [[1]]})").find("a matrix is a list"), std::string::npos);
  EXPECT_NE(refusal(R"({"q": [[1, 2], [3]], "k": [[1]], "v": [[1]]})")
                .find("q: row 1 has 1 number, but row 0 has 2 (rows count from 0)"),
            std::string::npos);
  EXPECT_LT(refusal("{\"" + std::string(5000, 'x') + "\": 1}").size(), 300U);
  EXPECT_LT(refusal("{\"q\": [[\"" + std::string(5000, 'x') + "\"]], \"k\": [[1]], \"v\": [[1]]}").size(), 300U);
  EXPECT_NE(refusal(R"({"q": [], "k": [[1]], "v": [[1]]})").find("q: no rows"), std::string::npos);
  EXPECT_NE(refusal(object(std::string(kGiven) + R"(, "tokens": ["a", 1])")).find("tokens[1]"), std::string::npos);
  EXPECT_NE(refusal(object(std::string(kGiven) + R"(, "tokens": ["a\u001b[2J", "b"])")).find("control"),
            std::string::npos);
  for (const char* option : {R"("causal": null)", R"("scale": true)", R"("scale": "")", R"("alibi": 1)",
                             R"("window": [])", R"("softcap": [1])", R"("heads": {})"}) {
    refusal(object(std::string(kGiven) + ", " + option));
  }
}

TEST(Specification, RefusesHostileSizes) {
  std::string rows = "[[1]";
  for (int row = 0; row < 64; ++row) rows += ",[1]";
  rows += "]";
  EXPECT_NE(refusal(R"({"q": )" + rows + R"(, "k": [[1]], "v": [[1]]})").find("65 rows"), std::string::npos);
  std::string tokens = R"(["a")";
  for (int row = 0; row < 64; ++row) tokens += R"(,"a")";
  EXPECT_NE(refusal(object(std::string(kGiven) + R"(, "tokens": )" + tokens + "]")).find("tokens: 65"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(kMostSpecificationBytes + 1, ' ')).find("bytes"), std::string::npos);
  EXPECT_NE(refusal(R"({"q": )" + std::string(400000, '[') + std::string(400000, ']') + "}").find("nested"),
            std::string::npos);
  refusal(R"({"q": )" + std::string(900000, '['));
}

}  // namespace
}  // namespace attn::explain

// The worked example: its numbers as held here, and as held in the shared description of it where that is at hand.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "explain/changes.h"
#include "explain/example.h"
#include "explain/facts.h"
#include "explain/json.h"

namespace attn::explain {
namespace {

using Json = nlohmann::json;
using reference::Problem;
using reference::Trace;

Json work(const Problem& problem) {
  Trace trace;
  const Status status = reference::trace(problem, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return Json::parse(as_json(trace));
}

// Equal structure, numbers within 1e-15; "-inf" as itself.
void expect_near(const Json& actual, const Json& expected, const std::string& where) {
  if (expected.is_array()) {
    ASSERT_EQ(actual.size(), expected.size()) << where;
    for (std::size_t n = 0; n < expected.size(); ++n) {
      expect_near(actual[n], expected[n], where + "[" + std::to_string(n) + "]");
    }
  } else if (expected.is_number()) {
    ASSERT_TRUE(actual.is_number()) << where;
    EXPECT_NEAR(actual.get<double>(), expected.get<double>(), 1e-15) << where;
  } else {
    EXPECT_EQ(actual, expected) << where;
  }
}

Problem unmasked() {
  Problem problem = worked_example();
  problem.options.causal = false;
  return problem;
}

TEST(Example, IsWhatItsJsonSays) {
  const Json json = work(worked_example());
  EXPECT_EQ(json["tokens"], Json({"order", "4471", "shipped"}));
  EXPECT_EQ(json["q"], Json::parse("[[2,1],[0,1],[1,1]]"));
  EXPECT_EQ(json["k"], Json::parse("[[2,1],[0,1],[1,0]]"));
  EXPECT_EQ(json["v"], Json::parse("[[3,0],[0,4],[1,1]]"));
  EXPECT_EQ(json["scores"], Json::parse("[[5,1,2],[1,1,0],[3,1,1]]"));
  EXPECT_EQ(json["scale"], 1 / std::sqrt(2.0));
  expect_near(json["masked"][1], Json::parse(R"([0.7071067811865475, 0.7071067811865475, "-inf"])"), "masked");
  EXPECT_EQ(json["masked"][0][1], "-inf");
  expect_near(json["weights"],
              Json::parse("[[1,0,0],[0.5,0.5,0],[0.672841798375977,0.16357910081201152,0.16357910081201152]]"),
              "weights");
  expect_near(json["out"], Json::parse("[[3,0],[1.5,2],[2.1821044959399427,0.8178955040600576]]"), "out");
}

TEST(Example, ShufflesItsOutputsWithItsTokensWhereNothingIsHidden) {
  Problem shuffled = unmasked();
  const Json straight = work(shuffled);
  ASSERT_TRUE(shuffle({2, 0, 1}, &shuffled).ok());
  const Json json = work(shuffled);
  EXPECT_EQ(json["tokens"], Json({"shipped", "order", "4471"}));
  expect_near(json["out"], Json({straight["out"][2], straight["out"][0], straight["out"][1]}), "out");
}

TEST(Saturation, IsWorkedOut) {
  expect_near(softmax({11, 0, -11}), Json({0.9999832982992144, 1.6701421843436452e-05, 2.7894215040074867e-10}),
              "");
  expect_near(softmax({1, 0, -1}), Json({0.6652409557748218, 0.24472847105479764, 0.09003057317038046}), "");
}

class ByHand : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(ATTN_BY_HAND);
    if (!file) GTEST_SKIP() << "skipped: " << ATTN_BY_HAND << " is not there";
    description_ = Json::parse(file);
  }

  Json what_if(const std::string& change) const {
    for (const Json& entry : description_["what_if"]) {
      if (entry["change"] == change) return entry;
    }
    ADD_FAILURE() << "no such what-if: " << change;
    return {};
  }

  Json description_;
};

TEST_F(ByHand, TheEmbeddedExampleIsTheDescribedOne) {
  const Json json = work(worked_example());
  for (const char* key : {"tokens", "x", "wq", "wk", "wv"}) EXPECT_EQ(json[key], description_[key]) << key;
  EXPECT_EQ(worked_example().options.causal, description_["causal"]);
}

TEST_F(ByHand, EveryNumber) {
  const Json json = work(worked_example());
  const Json& expected = description_["expect"];
  for (const char* key : {"q", "k", "v", "scores"}) expect_near(json[key], expected[key], key);
  expect_near(json["weights"], expected["weights_full"], "weights");
  expect_near(json["out"], expected["out_full"], "out");
  EXPECT_NEAR(1 / json["scale"].get<double>(), expected["scale_divisor"].get<double>(), 1e-15);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      const Json &masked = json["masked"][i][j], &rounded = expected["scaled_masked_3dp"][i][j];
      if (rounded.is_string()) {
        EXPECT_EQ(masked, rounded);
      } else {
        EXPECT_NEAR(masked.get<double>(), rounded.get<double>(), 0.0005);
      }
    }
  }
}

TEST_F(ByHand, EveryWhatIf) {
  Problem other_key = worked_example();
  ASSERT_TRUE(apply_changes({"k[4471]=2,0"}, &other_key).ok());
  expect_near(work(other_key)["weights"][1], what_if("key of 4471 becomes (2, 0)")["weights"], "other key");

  expect_near(work(unmasked())["weights"], what_if("no causal mask")["weights"], "no mask");

  Problem unscaled = worked_example();
  unscaled.options.scale = 1;
  expect_near(work(unscaled)["weights"][2], what_if("no scaling")["weights"], "no scaling");
}

TEST_F(ByHand, Saturation) {
  const Json told = work(worked_example())["saturation"];
  ASSERT_EQ(told.size(), description_["saturation"].size());
  for (std::size_t n = 0; n < told.size(); ++n) {
    expect_near(told[n]["scores"], description_["saturation"][n]["scores"], "scores");
    expect_near(told[n]["softmax"], description_["saturation"][n]["softmax"], "softmax");
  }
}

}  // namespace
}  // namespace attn::explain

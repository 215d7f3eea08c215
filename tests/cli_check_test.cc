// attn check, as users run it.
#include <nlohmann/json.hpp>

#include <cmath>
#include <random>

#include "cli_program.h"

namespace attn::cli {
namespace {

using nlohmann::json;

class CheckVerb : public CliTest {
 protected:
  static constexpr std::int64_t kHeads = 2, kRows = 12, kDim = 8;

  CheckVerb() {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (const char* name : {"q", "k", "v"}) {
      std::vector<float>& numbers = tensors_[name];
      for (std::int64_t n = 0; n < kHeads * kRows * kDim; ++n) numbers.push_back(normal(random));
      write(std::string(name) + ".npy", {kHeads, kRows, kDim}, numbers);
    }
  }

  // attention as a beginner writes it.
  std::vector<float> attention(double scale, bool causal, bool zero_after = false) const {
    std::vector<float> out;
    for (std::int64_t h = 0; h < kHeads; ++h) {
      for (std::int64_t i = 0; i < kRows; ++i) {
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t j = 0; j < kRows; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < kDim; ++d) score += at("q", h, i, d) * at("k", h, j, d);
          const bool hidden = causal && j > i;
          weights.push_back(hidden && !zero_after ? 0 : std::exp(score * scale));
          sum += weights.back();
          if (hidden) weights.back() = 0;
        }
        for (std::int64_t d = 0; d < kDim; ++d) {
          double number = 0;
          for (std::int64_t j = 0; j < kRows; ++j)
            number += weights[static_cast<std::size_t>(j)] / sum * at("v", h, j, d);
          out.push_back(static_cast<float>(number));
        }
      }
    }
    return out;
  }

  Outcome check(const std::vector<float>& theirs, std::vector<std::string> more = {"--causal"}) {
    write("theirs.npy", {kHeads, kRows, kDim}, theirs);
    std::vector<std::string> arguments{"check", "--q",   "q.npy", "--k",       "k.npy",
                                       "--v",   "v.npy", "--out", "theirs.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return attn(arguments);
  }

  double at(const char* name, std::int64_t h, std::int64_t row, std::int64_t d) const {
    return tensors_.at(name)[static_cast<std::size_t>((h * kRows + row) * kDim + d)];
  }

  std::map<std::string, std::vector<float>> tensors_;
};

const double kScale = 1 / std::sqrt(8.0);

TEST_F(CheckVerb, SaysRightWithErrorAndBound) {
  const Outcome told = check(attention(kScale, true));
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_TRUE(told.out.starts_with("right: ")) << told.out;
  EXPECT_NE(told.out.find("is allowed"), std::string::npos);
  const json verdict = json::parse(check(attention(kScale, true), {"--causal", "--json"}).out);
  EXPECT_EQ(verdict["verdict"], "right");
  EXPECT_LT(verdict["max_error"], verdict["bound"]);
  EXPECT_EQ(verdict["precision"], "f32");
  EXPECT_EQ(verdict["rows_differing"], 0);
  EXPECT_TRUE(verdict["invisible"].is_array());
}

TEST_F(CheckVerb, NamesTheMistakeWithExitCodeOne) {
  const Outcome told = check(attention(1, true));
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_EQ(told.err, "");
  EXPECT_TRUE(told.out.starts_with("wrong: by ")) << told.out;
  EXPECT_NE(told.out.find("scale-missing: no 1/sqrt(Dk)"), std::string::npos) << told.out;
  const auto ids = [](const Outcome& outcome) { return json::parse(outcome.out)["explanations"][0]["ids"]; };
  EXPECT_EQ(ids(check(attention(kScale, true, true), {"--causal", "--json"})), json::array({"mask-after-softmax"}));
  EXPECT_EQ(ids(check(attention(kScale, true), {"--json"})), json::array({"causal-forced"}));
  EXPECT_EQ(ids(check(attention(1, true, true), {"--causal", "--json"})),
            json::array({"scale-missing", "mask-after-softmax"}));
}

TEST_F(CheckVerb, FitsAScale) {
  const Outcome outcome = check(attention(1 / std::sqrt(512.0), true), {"--causal", "--json"});
  EXPECT_EQ(outcome.exit_code, 1);
  const json verdict = json::parse(outcome.out);
  EXPECT_NEAR(verdict["fitted_scale"], 1 / std::sqrt(512.0), 1e-5);
  EXPECT_EQ(verdict["fitted_formula"], "1/sqrt(512)");
  EXPECT_NE(check(attention(1 / std::sqrt(512.0), true))
                .out.find("Their scale is 0.0442 = 1/sqrt(512); 0.354 was expected."),
            std::string::npos);
}

TEST_F(CheckVerb, UsesTheirWeightsAndLse) {
  const std::vector<std::string> run{"run",      "--q", "q.npy",   "--k",       "k.npy", "--v",   "v.npy",
                                     "--causal", "-o",  "out.npy", "--weights", "w.npy", "--lse", "l.npy"};
  ASSERT_EQ(attn(run).exit_code, 0);
  std::vector<float> theirs = attention(kScale, true);
  for (float& number : theirs) number *= 2;
  const Outcome told = check(theirs, {"--causal", "--their-weights", "w.npy", "--their-lse", "l.npy"});
  EXPECT_NE(told.out.find("Their weights are right: if out is not, look behind them"), std::string::npos)
      << told.out;
  EXPECT_NE(told.out.find("Their lse is right"), std::string::npos);
  std::vector<float> base_2;
  for (const double lse : read("l.npy")) base_2.push_back(static_cast<float>(lse / std::log(2.0)));
  write("l2.npy", {kHeads, kRows}, base_2);
  EXPECT_NE(check(theirs, {"--causal", "--their-lse", "l2.npy"}).out.find("lse-base"), std::string::npos);
  EXPECT_EQ(check(theirs, {"--causal", "--their-weights", "l.npy"}).exit_code, 2);
}

TEST_F(CheckVerb, ToleranceReplacesTheBound) {
  std::vector<float> theirs = attention(kScale, true);
  for (float& number : theirs) number += 0.001F;
  EXPECT_EQ(check(theirs).exit_code, 1);
  EXPECT_EQ(check(theirs, {"--causal", "--tolerance", "0.01"}).exit_code, 0);
  EXPECT_EQ(check(theirs, {"--causal", "--tolerance", "-1"}).exit_code, 2);
}

TEST_F(CheckVerb, SaysWhenNothingExplainsIt) {
  std::vector<float> theirs = attention(kScale, true);
  for (std::size_t n = 0; n < theirs.size(); ++n) theirs[n] = std::sin(static_cast<float>(n));
  const Outcome told = check(theirs);
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_NE(told.out.find("No known mistake explains it."), std::string::npos) << told.out;
  EXPECT_EQ(json::parse(check(theirs, {"--causal", "--json"}).out)["verdict"], "unexplained");
}

TEST_F(CheckVerb, RefusesWhatDoesNotFit) {
  const Outcome none = attn({"check", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("--out: not given"), std::string::npos);
  write("short.npy", {kRows, kDim}, std::vector<float>(kRows * kDim));
  const Outcome shape = attn({"check", "--q", "q.npy", "--k", "k.npy", "--v", "v.npy", "--out", "short.npy"});
  EXPECT_EQ(shape.exit_code, 2);
  EXPECT_NE(shape.err.find("theirs: 2 dimensions, but q has 3"), std::string::npos) << shape.err;
}

}  // namespace
}  // namespace attn::cli

// attn probe, as users run it: written, answered by a program, judged.
#include <nlohmann/json.hpp>

#include "attn/diagnose.h"
#include "cli_program.h"
#include "diagnose/probe.h"

namespace attn::cli {
namespace {

using nlohmann::json;

class ProbeVerb : public CliTest {
 protected:
  ProbeVerb() { EXPECT_EQ(attn({"probe", "-o", "probe"}).exit_code, 0); }

  void answer(const diagnose::ProbeCase& probe, const std::vector<double>& out) const {
    const std::vector<float> numbers(out.begin(), out.end());
    write("probe/" + probe.name + "/out.npy", probe.out_shape, numbers);
  }
  void answer_all(std::span<const diagnose::Form* const> forms) const {
    for (const diagnose::ProbeCase& probe : diagnose::probe_cases()) {
      const auto made = diagnose::answer_of(probe, forms);
      answer(probe, made ? made->out : diagnose::answer_of(probe, {})->out);
    }
  }
};

TEST_F(ProbeVerb, WritesEveryTensorAndTheHarnesses) {
  for (const char* name : {"README.md", "cases.json", "harness_numpy.py", "harness_torch.py", "harness.cc"})
    EXPECT_GT(contents_of(path(std::string("probe/") + name)).size(), 500U) << name;
  const json cases = json::parse(contents_of(path("probe/cases.json")));
  EXPECT_EQ(cases.size(), diagnose::probe_cases().size());
  for (const json& one : cases) {
    for (const json& tensor : one["tensors"]) {
      const std::string name = one["name"].get<std::string>(), of = tensor.get<std::string>();
      if (of == "mask") continue;  // no floating-point numbers
      EXPECT_EQ(read("probe/" + name + "/" + of + ".npy"), read("probe/probe.safetensors:" + name + "." + of));
    }
  }
}

TEST_F(ProbeVerb, JudgesAnswers) {
  answer_all({});
  const Outcome right = attn({"probe", "--judge", "probe"});
  EXPECT_EQ(right.exit_code, 0) << right.out << right.err;
  EXPECT_TRUE(right.out.starts_with("right: 23 cases")) << right.out;
  for (const diagnose::Entry& entry : diagnose::catalogue()) {
    if (entry.mistake.id != "rope-layout" && entry.mistake.id != "peek-one") continue;
    const diagnose::Form* forms[] = {&entry.forms.front()};
    answer_all(forms);
    const Outcome wrong = attn({"probe", "--judge", "probe", "--json"});
    EXPECT_EQ(wrong.exit_code, 1);
    const json verdict = json::parse(wrong.out);
    EXPECT_EQ(verdict["verdict"], "wrong");
    EXPECT_EQ(verdict["explanations"][0]["ids"], json::array({std::string(entry.mistake.id)}));
    EXPECT_NE(attn({"probe", "--judge", "probe"}).out.find(entry.mistake.fix), std::string::npos);
  }
}

// The C++ harness with an attention that knows the plain cases alone, and forgets the scale.
TEST_F(ProbeVerb, HarnessOfCppCallsUserCode) {
  const std::string harness = contents_of(path("probe/harness.cc"));
  const std::size_t begin = harness.find("struct Tensor"), end = harness.find("bool answer(");
  std::ofstream code(path("probe/my_attention.cc"));
  code << "#include <cmath>\n#include <cstdint>\n#include <map>\n#include <string>\n#include <vector>\n"
       << harness.substr(begin, end - begin) << R"(
bool answer(const Case& c, std::vector<float>* out) {
  if (c.kind != "attention" || !c.arguments.empty() || c.tensors.size() != 3) return false;
  const Tensor &q = c.tensors.at("q"), &k = c.tensors.at("k"), &v = c.tensors.at("v");
  const auto n = q.shape[2], d = q.shape[3], m = k.shape[2], dv = v.shape[3];
  for (std::int64_t slice = 0; slice < q.shape[0] * q.shape[1]; ++slice) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<double> w;
      double sum = 0;
      for (std::int64_t j = 0; j < m; ++j) {
        double s = 0;
        for (std::int64_t c2 = 0; c2 < d; ++c2) s += q.numbers[(slice * n + i) * d + c2] * k.numbers[(slice * m + j) * d + c2];
        w.push_back(std::exp(s));
        sum += w.back();
      }
      for (std::int64_t c2 = 0; c2 < dv; ++c2) {
        double o = 0;
        for (std::int64_t j = 0; j < m; ++j) o += w[j] / sum * v.numbers[(slice * m + j) * dv + c2];
        out->push_back(static_cast<float>(o));
      }
    }
  }
  return true;
}
)";
  code.close();
  const std::string compile =
      "cd probe && " + std::string(ATTN_CXX) + " -std=c++17 harness.cc my_attention.cc -o harness && ./harness";
  const Outcome ran = execute({"bash", "-c", compile});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("heads: answered"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("causal: left out"), std::string::npos);
  const json verdict = json::parse(attn({"probe", "--judge", "probe", "--json"}).out);
  EXPECT_EQ(verdict["explanations"][0]["ids"], json::array({"scale-missing"})) << verdict.dump();
}

// The NumPy harness, where NumPy is: a right attention without options, which leaves the cases out that need them.
TEST_F(ProbeVerb, HarnessOfNumPyLeavesOutWhatItCanNot) {
  if (execute({"python3", "-c", "import numpy"}).exit_code != 0) GTEST_SKIP() << "python3 has no numpy: skipped";
  std::ofstream(path("probe/mine.py")) << R"(import numpy as np
def attention(q, k, v, *, causal=False):
    if q.shape[1] != k.shape[1]:
        raise NotImplementedError("no groups")
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v
)";
  const Outcome ran = execute({"bash", "-c", "cd probe && python3 harness_numpy.py mine"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("causal: answered"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("grouped: left out, no groups"), std::string::npos);
  EXPECT_NE(ran.out.find("mask: left out, attention() takes no mask"), std::string::npos);
  EXPECT_NE(ran.out.find("merge: left out, there is no merge()"), std::string::npos);
  const Outcome judged = attn({"probe", "--judge", "probe"});
  EXPECT_EQ(judged.exit_code, 0) << judged.out;
  EXPECT_NE(judged.out.find("Not answered: "), std::string::npos);
}

TEST_F(ProbeVerb, RefusesWhatMakesNoSense) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& piece) {
    const Outcome outcome = attn(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(piece), std::string::npos) << outcome.err;
  };
  refused({"probe"}, "-o, --judge: give one of them");
  refused({"probe", "-o", "probe"}, "is there already");
  refused({"probe", "--judge", "nothing"}, "holds no probe");
  refused({"probe", "--judge", "probe"}, "run a harness first");
  refused({"probe", "-o", "other", "--json"}, "--json: goes with --judge");
  write("probe/causal/out.npy", {2, 2}, {1, 2, 3, 4});
  const Outcome judged = attn({"probe", "--judge", "probe"});
  EXPECT_EQ(judged.exit_code, 1);
  EXPECT_NE(judged.out.find("not judged: causal: shape [2, 2], but the answer to causal is [2, 3, 7, 5]"),
            std::string::npos);
}

}  // namespace
}  // namespace attn::cli

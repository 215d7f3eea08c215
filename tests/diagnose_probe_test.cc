// The probe: it shows every mistake, and no two of them look alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "attn/dtype.h"
#include "diagnose/probe.h"

namespace attn::diagnose {
namespace {

// Mistakes without forms: their answers are random, or differ from machine to machine.
bool is_made_of_forms(const Entry& entry) { return !entry.forms.empty(); }

// The answers of all cases with a form made; a case that it does not concern has its right one.
std::map<std::string, std::vector<double>> answers_with(std::span<const Form* const> forms) {
  std::map<std::string, std::vector<double>> answers;
  for (const ProbeCase& probe : probe_cases()) {
    const auto answer = answer_of(probe, forms);
    answers[probe.name] = answer ? answer->out : answer_of(probe, {})->out;
  }
  return answers;
}

// As f32 has them.
std::map<std::string, std::vector<double>> rounded(std::map<std::string, std::vector<double>> answers) {
  for (auto& [name, numbers] : answers) {
    for (double& number : numbers) number = static_cast<float>(number);
  }
  return answers;
}

bool names(const ProbeVerdict& verdict, const std::vector<std::string>& ids) {
  return std::any_of(verdict.explanations.begin(), verdict.explanations.end(),
                     [&](const Explanation& explanation) { return explanation.ids == ids; });
}

TEST(Probe, CallsRightAnswersRight) {
  const ProbeVerdict verdict = judge_probe(rounded(answers_with({})));
  EXPECT_TRUE(verdict.right);
  EXPECT_TRUE(verdict.missing.empty());
  EXPECT_EQ(verdict.answered.size(), probe_cases().size());
}

TEST(Probe, NamesEveryMistakeAlone) {
  for (const Entry& entry : catalogue()) {
    for (const Form& form : entry.forms) {
      const Form* forms[] = {&form};
      const auto answers = answers_with(forms);
      const ProbeVerdict verdict = judge_probe(rounded(answers));
      if (verdict.right) {
        // Some forms show nowhere: then another form of the mistake does.
        continue;
      }
      ASSERT_FALSE(verdict.explanations.empty()) << entry.mistake.id << " " << form.note;
      EXPECT_TRUE(names(verdict, {std::string(entry.mistake.id)})) << entry.mistake.id << " " << form.note;
      EXPECT_EQ(verdict.explanations.size(), 1U)
          << entry.mistake.id << " (" << form.note << ") looks like " << verdict.explanations.back().ids[0] << " ("
          << verdict.explanations.back().note << "), " << verdict.explanations.front().ids[0];
    }
  }
}

TEST(Probe, ShowsEveryMistake) {
  for (const Entry& entry : catalogue()) {
    if (!is_made_of_forms(entry)) continue;
    const bool shown = std::any_of(entry.forms.begin(), entry.forms.end(), [](const Form& form) {
      const Form* forms[] = {&form};
      return !judge_probe(rounded(answers_with(forms))).right;
    });
    EXPECT_TRUE(shown) << entry.mistake.id;
  }
}

// Every pair of entries, each in its every form: some case tells them apart, beyond rounding.
TEST(Probe, SeparatesEveryPair) {
  struct Made {
    const Entry* entry;
    const Form* form;
    std::vector<ProbeAnswer> answers;
  };
  std::vector<Made> all;
  for (const Entry& entry : catalogue()) {
    for (const Form& form : entry.forms) {
      const Form* forms[] = {&form};
      Made made{&entry, &form, {}};
      bool shows = false;
      for (const ProbeCase& probe : probe_cases()) {
        const ProbeAnswer right = *answer_of(probe, {});
        const auto answer = answer_of(probe, forms);
        made.answers.push_back(answer ? *answer : right);
        shows = shows || !is_answer(made.answers.back(), right.out);
      }
      if (shows) all.push_back(std::move(made));
    }
  }
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      if (all[a].entry == all[b].entry) continue;
      bool apart = false;
      for (std::size_t n = 0; n < all[a].answers.size() && !apart; ++n)
        apart = !is_answer(all[a].answers[n], all[b].answers[n].out);
      EXPECT_TRUE(apart) << all[a].entry->mistake.id << " (" << all[a].form->note << ") and "
                         << all[b].entry->mistake.id << " (" << all[b].form->note << ")";
    }
  }
}

TEST(Probe, NamesPairs) {
  const auto& entries = catalogue();
  std::mt19937_64 random(3);
  int tried = 0, named = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const Entry &a = entries[random() % entries.size()], &b = entries[random() % entries.size()];
    if (a.forms.empty() || b.forms.empty() || &a == &b) continue;
    const Form* forms[] = {&a.forms[random() % a.forms.size()], &b.forms[random() % b.forms.size()]};
    // Cases that one of them alone concerns have its answer.
    std::map<std::string, std::vector<double>> answers;
    for (const ProbeCase& probe : probe_cases()) {
      const Form *first[] = {forms[0]}, *second[] = {forms[1]};
      const auto both = answer_of(probe, forms), one = answer_of(probe, first), two = answer_of(probe, second);
      answers[probe.name] = both ? both->out : one ? one->out : two ? two->out : answer_of(probe, {})->out;
    }
    const ProbeVerdict verdict = judge_probe(rounded(answers));
    if (verdict.right) continue;
    ++tried;
    named += !verdict.explanations.empty();
  }
  ASSERT_GT(tried, 20);
  EXPECT_GE(named, 0.9 * tried) << named << " of " << tried;
}

TEST(Probe, FindsDropoutAndCoarseArithmetic) {
  auto answers = rounded(answers_with({}));
  std::mt19937_64 random(5);
  for (const char* name : {"identity", "identity-again"}) {
    for (double& number : answers[name]) number = random() % 4 == 0 ? 0 : number / 0.75;
  }
  EXPECT_TRUE(names(judge_probe(answers), {"dropout-at-eval"}));

  auto coarse = answers_with({});
  for (auto& [name, numbers] : coarse) {
    for (double& number : numbers) number = bf16_to_float(float_to_bf16(static_cast<float>(number)));
  }
  EXPECT_TRUE(names(judge_probe(coarse), {"softmax-16bit"}));
}

TEST(Probe, JudgesWhatWasAnswered) {
  std::map<std::string, std::vector<double>> some;
  some["causal"] = answer_of(probe_cases()[3], {})->out;
  const ProbeVerdict verdict = judge_probe(some);
  EXPECT_TRUE(verdict.right);
  EXPECT_EQ(verdict.answered, std::vector<std::string>{"causal"});
  EXPECT_EQ(verdict.missing.size(), probe_cases().size() - 1);
  EXPECT_FALSE(judge_probe({}).right);
}

TEST(Probe, SaysWhichMistakesExplainACaseWhereNoneExplainsAll) {
  auto answers = rounded(answers_with({}));
  for (double& number : answers["heads"]) number += 0.5;
  const ProbeVerdict verdict = judge_probe(answers);
  EXPECT_FALSE(verdict.right);
  EXPECT_TRUE(verdict.explanations.empty());
  EXPECT_EQ(verdict.wrong, std::vector<std::string>{"heads"});
  EXPECT_TRUE(verdict.by_case.contains("heads"));
}

}  // namespace
}  // namespace attn::diagnose

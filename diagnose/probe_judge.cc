// The judge of a probe's answers.
#include <algorithm>
#include <cmath>
#include <set>

#include "diagnose/probe.h"

namespace attn::diagnose {
namespace {

// A form, and the cases whose answers it gives.
struct Suspect {
  const Entry* entry;
  const Form* form;
  std::set<std::string> gives;    // cases whose answer is this form's
  std::set<std::string> changes;  // cases in which it makes a difference
};

struct AnsweredCase {
  const ProbeCase* probe;
  const std::vector<double>* numbers;
  ProbeAnswer right;
  bool is_right = false;
};

// What each single form makes of each case, and nothing where it does not concern it: worked out once.
struct SingleAnswers {
  const Entry* entry;
  const Form* form;
  std::map<std::string, ProbeAnswer> by_case;
};
const std::vector<SingleAnswers>& single_answers() {
  static const std::vector<SingleAnswers> kAll = [] {
    std::vector<SingleAnswers> all;
    for (const Entry& entry : catalogue()) {
      for (const Form& form : entry.forms) {
        const Form* forms[] = {&form};
        all.push_back({&entry, &form, {}});
        for (const ProbeCase& probe : probe_cases()) {
          if (auto answer = answer_of(probe, forms)) all.back().by_case.emplace(probe.name, std::move(*answer));
        }
      }
    }
    return all;
  }();
  return kAll;
}

// What a case's answer is if a mistake is made that may not concern it.
ProbeAnswer with_mistakes(const AnsweredCase& answered, std::span<const Form* const> forms) {
  const auto answer = answer_of(*answered.probe, forms);
  return answer ? *answer : answered.right;
}

std::vector<Suspect> suspects_of(const std::vector<AnsweredCase>& cases) {
  std::vector<Suspect> suspects;
  for (const SingleAnswers& made : single_answers()) {
    Suspect suspect{made.entry, made.form, {}, {}};
    for (const AnsweredCase& answered : cases) {
      const auto found = made.by_case.find(answered.probe->name);
      const ProbeAnswer& answer = found == made.by_case.end() ? answered.right : found->second;
      if (is_answer(answer, *answered.numbers)) suspect.gives.insert(answered.probe->name);
      if (!is_answer(answer, answered.right.out)) suspect.changes.insert(answered.probe->name);
    }
    if (!suspect.changes.empty()) suspects.push_back(std::move(suspect));
  }
  return suspects;
}

// Two runs of the same case differ, or weights are kept or dropped as by dropout.
bool drops_weights(const std::vector<AnsweredCase>& cases) {
  const AnsweredCase *once = nullptr, *again = nullptr;
  for (const AnsweredCase& answered : cases) {
    if (answered.probe->name == "identity") once = &answered;
    if (answered.probe->name == "identity-again") again = &answered;
  }
  if (!once || once->is_right) return false;
  if (again && (again->is_right || *again->numbers == *once->numbers)) return false;
  std::size_t dropped = 0;
  double factor = 0;
  for (std::size_t n = 0; n < once->numbers->size(); ++n) {
    const double ratio = (*once->numbers)[n] / once->right.out[n];
    if (ratio == 0) {
      ++dropped;
    } else if (factor == 0) {
      factor = ratio;
    } else if (!(std::fabs(ratio / factor - 1) < 1e-4)) {
      return false;
    }
  }
  return dropped > 0 && factor > 1;
}

// Every answer is right but for 16-bit rounding: within its bound, and as a whole, for a bound may be as wide as the numbers.
bool is_coarse(const std::vector<AnsweredCase>& cases) {
  for (const AnsweredCase& answered : cases) {
    const auto answer = answer_of(*answered.probe, {}, {0x1p-8, 0x1p-8, true});
    if (!answer || !is_answer(*answer, *answered.numbers)) return false;
    double errors = 0, ours = 0;
    for (std::size_t n = 0; n < answer->out.size(); ++n) {
      const double error = (*answered.numbers)[n] - answer->out[n];
      errors += error * error;
      ours += answer->out[n] * answer->out[n];
    }
    // Scores of hundreds and more, rounded to 16 bits, may move every weight.
    if (!(std::sqrt(errors / ours) <= (answered.probe->large_scores ? 0.5 : 0.05))) return false;
  }
  return true;
}

void add_pairs(const std::vector<AnsweredCase>& cases, const std::vector<Suspect>& suspects,
               std::vector<Explanation>* found) {
  for (std::size_t a = 0; a < suspects.size(); ++a) {
    for (std::size_t b = a + 1; b < suspects.size(); ++b) {
      if (suspects[a].entry == suspects[b].entry) continue;
      const Form* forms[] = {suspects[a].form, suspects[b].form};
      bool fits = true;
      for (const AnsweredCase& answered : cases) {
        const std::string& name = answered.probe->name;
        const bool first = suspects[a].changes.contains(name), second = suspects[b].changes.contains(name);
        // Where only one of both makes a difference, its own answer counts.
        if (first && second) {
          fits = is_answer(with_mistakes(answered, forms), *answered.numbers);
        } else {
          fits = first    ? suspects[a].gives.contains(name)
                 : second ? suspects[b].gives.contains(name)
                          : answered.is_right;
        }
        if (!fits) break;
      }
      if (!fits) continue;
      found->push_back({{std::string(suspects[a].entry->mistake.id), std::string(suspects[b].entry->mistake.id)},
                        0,
                        joined_notes(suspects[a].form->note, suspects[b].form->note)});
    }
  }
}

void add_unless_known(Explanation explanation, std::vector<Explanation>* explanations) {
  const bool known = std::any_of(explanations->begin(), explanations->end(),
                                 [&](const Explanation& k) { return k.ids == explanation.ids; });
  if (!known) explanations->push_back(std::move(explanation));
}

// How many wrong answers each mistake gives; the five that give the most.
void add_most(const std::vector<Suspect>& suspects, ProbeVerdict* verdict) {
  for (const Suspect& suspect : suspects) {
    std::size_t explained = 0;
    for (const std::string& name : verdict->wrong)
      explained += suspect.gives.contains(name) && suspect.changes.contains(name);
    const std::string id(suspect.entry->mistake.id);
    const auto same = std::find_if(verdict->most.begin(), verdict->most.end(),
                                   [&](const auto& other) { return other.first == id; });
    if (same != verdict->most.end()) {
      same->second = std::max(same->second, explained);
    } else if (explained > 0) {
      verdict->most.emplace_back(id, explained);
    }
  }
  std::stable_sort(verdict->most.begin(), verdict->most.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (verdict->most.size() > 5) verdict->most.resize(5);
}

// Which mistakes give each wrong answer.
void add_by_case(const std::vector<Suspect>& suspects, ProbeVerdict* verdict) {
  for (const std::string& name : verdict->wrong) {
    std::vector<std::string>& ids = verdict->by_case[name];
    for (const Suspect& suspect : suspects) {
      const std::string id(suspect.entry->mistake.id);
      if (suspect.gives.contains(name) && suspect.changes.contains(name) &&
          std::find(ids.begin(), ids.end(), id) == ids.end())
        ids.push_back(id);
    }
  }
}

}  // namespace

ProbeVerdict judge_probe(const std::map<std::string, std::vector<double>>& answers) {
  ProbeVerdict verdict;
  std::vector<AnsweredCase> cases;
  for (const ProbeCase& probe : probe_cases()) {
    const auto found = answers.find(probe.name);
    if (found == answers.end()) {
      verdict.missing.push_back(probe.name);
      continue;
    }
    verdict.answered.push_back(probe.name);
    AnsweredCase answered{&probe, &found->second, *answer_of(probe, {}), false};
    answered.is_right = is_answer(answered.right, found->second);
    if (!answered.is_right) verdict.wrong.push_back(probe.name);
    cases.push_back(std::move(answered));
  }
  verdict.right = verdict.wrong.empty() && !cases.empty();
  if (verdict.right || cases.empty()) return verdict;

  const std::vector<Suspect> suspects = suspects_of(cases);
  for (const Suspect& suspect : suspects) {
    if (suspect.gives.size() == cases.size())
      add_unless_known({{std::string(suspect.entry->mistake.id)}, 0, suspect.form->note}, &verdict.explanations);
  }
  if (verdict.explanations.empty() && drops_weights(cases))
    verdict.explanations.push_back({{"dropout-at-eval"}, 0, ""});
  if (verdict.explanations.empty() && is_coarse(cases)) verdict.explanations.push_back({{"softmax-16bit"}, 0, ""});
  if (verdict.explanations.empty()) add_pairs(cases, suspects, &verdict.explanations);
  if (!verdict.explanations.empty()) return verdict;
  add_most(suspects, &verdict);
  add_by_case(suspects, &verdict);
  return verdict;
}

}  // namespace attn::diagnose

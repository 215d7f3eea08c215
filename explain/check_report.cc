#include "explain/check_report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "explain/json_number.h"

namespace attn::explain {
namespace {

using nlohmann::ordered_json;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string place(const OutPlace& where) {
  return "sequence " + std::to_string(where.batch) + ", head " + std::to_string(where.head) + ", row " +
         std::to_string(where.row) + ", column " + std::to_string(where.column);
}

std::string names_of(const Explanation& explanation) {
  std::string names;
  for (const std::string& id : explanation.ids) names += (names.empty() ? "" : " and ") + id;
  return names;
}

std::string lines_of(const std::vector<std::string>& sentences) {
  std::string lines;
  for (const std::string& sentence : sentences) lines += sentence + '\n';
  return lines;
}

std::string explanation_text(const Explanation& explanation) {
  std::string names, advice;
  for (const std::string& id : explanation.ids) {
    const Mistake& mistake = *find_mistake(id);
    names += (names.empty() ? "" : "; and ") + std::string(mistake.name);
    advice += "    " + std::string(mistake.what) + " " + std::string(mistake.fix) + '\n';
  }
  const std::string note = explanation.note.empty() ? "" : " (" + explanation.note + ")";
  return "\n  " + names_of(explanation) + ": " + names + note + "; largest difference " +
         number(explanation.max_error) + "\n" + advice;
}

std::string explanations_text(const std::vector<Explanation>& explanations) {
  if (explanations.empty()) return "";
  std::string text = explanations.size() > 1
                         ? "\nEach of these gives the same numbers as theirs; these inputs can't tell them apart, "
                           "attn probe can:\n"
                         : "\nEqual to what you get with this mistake:\n";
  for (const Explanation& explanation : explanations) text += explanation_text(explanation);
  return text;
}

std::string scale_text(const Diagnosis& diagnosis, double expected_scale) {
  if (!diagnosis.fitted_scale) return "";
  const std::string scale = number(*diagnosis.fitted_scale), formula = diagnosis.fitted_formula;
  return "\nTheir scale is " + scale + (formula.empty() || formula == scale ? "" : " = " + formula) + "; " +
         number(expected_scale) + " was expected.\n";
}

std::string unexplained_text(const Diagnosis& diagnosis) {
  if (diagnosis.verdict != Verdict::unexplained) return "";
  std::string text = "\nNo known mistake explains it.";
  if (diagnosis.closest && diagnosis.closest->max_error < diagnosis.max_error / 2) {
    text += " The closest is " + names_of(*diagnosis.closest) + ", which is still off by " +
            number(diagnosis.closest->max_error) + '.';
  }
  return text + '\n';
}

std::string wrong_text(const Diagnosis& diagnosis, double expected_scale) {
  return "wrong: by " + number(diagnosis.max_error) + " at " + place(diagnosis.where) + ", where " +
         number(diagnosis.bound) + " is allowed\n" + lines_of(diagnosis.patterns) +
         explanations_text(diagnosis.explanations) + scale_text(diagnosis, expected_scale) +
         unexplained_text(diagnosis);
}

std::string right_text(const Diagnosis& diagnosis) {
  std::string text = "right: the largest error beside its bound is " + number(diagnosis.max_error) + ", where " +
                     number(diagnosis.bound) + " is allowed, at " + place(diagnosis.where) + '\n';
  if (!diagnosis.precision.empty()) text += "Its rounding is that of " + diagnosis.precision + " or finer.\n";
  return text + lines_of(diagnosis.patterns);
}

// What was looked at, and what it can't show.
std::string extent_text(const Diagnosis& diagnosis) {
  std::string text = "\n" + std::to_string(diagnosis.rows) + (diagnosis.rows == 1 ? " row" : " rows") +
                     " compared, " + std::to_string(diagnosis.rows_judged) + " held to the bound";
  if (diagnosis.verdict != Verdict::right)
    text += ", mistakes held against " + std::to_string(diagnosis.rows_explained);
  text += ". Mistakes that can't be seen in the rows looked at:";
  for (const std::string& id : diagnosis.invisible) text += ' ' + id;
  return text + '\n';
}

ordered_json json_of(const Explanation& explanation) {
  return {{"ids", explanation.ids}, {"max_error", json_number(explanation.max_error)}, {"note", explanation.note}};
}

}  // namespace

std::string as_text(const Diagnosis& diagnosis, double expected_scale) {
  if (diagnosis.rows == 0) return "right: there is no row to compare\n";
  const bool right = diagnosis.verdict == Verdict::right;
  return (right ? right_text(diagnosis) : wrong_text(diagnosis, expected_scale)) + extent_text(diagnosis);
}

std::string as_json(const Diagnosis& diagnosis) {
  constexpr const char* kVerdicts[] = {"right", "wrong", "unexplained"};
  ordered_json explanations = ordered_json::array();
  for (const Explanation& explanation : diagnosis.explanations) explanations.push_back(json_of(explanation));
  ordered_json json = {{"verdict", kVerdicts[static_cast<int>(diagnosis.verdict)]},
                       {"max_error", json_number(diagnosis.max_error)},
                       {"bound", json_number(diagnosis.bound)},
                       {"where",
                        {{"batch", diagnosis.where.batch},
                         {"head", diagnosis.where.head},
                         {"row", diagnosis.where.row},
                         {"column", diagnosis.where.column}}},
                       {"rows", diagnosis.rows},
                       {"rows_differing", diagnosis.rows_differing},
                       {"patterns", diagnosis.patterns},
                       {"explanations", std::move(explanations)},
                       {"closest", nullptr},
                       {"fitted_scale", nullptr},
                       {"fitted_formula", diagnosis.fitted_formula},
                       {"invisible", diagnosis.invisible},
                       {"precision", diagnosis.precision},
                       {"rows_judged", diagnosis.rows_judged},
                       {"rows_explained", diagnosis.rows_explained}};
  if (diagnosis.closest) json["closest"] = json_of(*diagnosis.closest);
  if (diagnosis.fitted_scale) json["fitted_scale"] = json_number(*diagnosis.fitted_scale);
  return json.dump() + '\n';
}

}  // namespace attn::explain

// The judge of other people's answers, for C.
#include "attn/diagnose.h"
#include "bindings/c/convert.h"
#include "bindings/c/text.h"
#include "explain/check_report.h"

using attn::c::input;

struct attn_diagnosis {
  attn::Verdict verdict;
  std::string text, json;
};

namespace {

double scale_of(const attn_tensor& q, const attn::AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(q.shape[q.rank - 1])));
}

}  // namespace

void attn_check_options_init(attn_check_options* options, size_t size) {
  attn_check_options defaults{};
  defaults.tolerance = std::nan("");
  attn::c::init_sized(defaults, size, options);
}

int attn_check(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_tensor* theirs,
               const attn_options* options, const attn_check_options* check_options, attn_diagnosis** diagnosis) {
  return attn::c::with_options(
      options, {{"q", q}, {"k", k}, {"v", v}, {"theirs", theirs}, {"diagnosis", diagnosis}},
      [&](const attn::AttentionOptions& read) -> attn::Status {
        attn_check_options defaults, known;
        attn_check_options_init(&defaults, sizeof defaults);
        ATTN_RETURN_IF_ERROR(attn::c::read_sized("check_options", check_options, defaults, &known));
        attn::CheckOptions made{.weights = attn::c::optional_input(known.weights),
                                .lse = attn::c::optional_input(known.lse)};
        if (!std::isnan(known.tolerance)) made.tolerance = known.tolerance;
        if (known.tolerance < 0)
          return attn::Status::error("tolerance: " + std::to_string(known.tolerance) +
                                     " is below 0; give a difference");
        attn::Diagnosis found;
        ATTN_RETURN_IF_ERROR(attn::check(input(q), input(k), input(v), input(theirs), read, made, &found));
        *diagnosis = new attn_diagnosis{found.verdict, attn::explain::as_text(found, scale_of(*q, read)),
                                        attn::explain::as_json(found)};
        return {};
      });
}

int32_t attn_diagnosis_verdict(const attn_diagnosis* diagnosis) {
  return diagnosis ? static_cast<int32_t>(diagnosis->verdict) : ATTN_UNEXPLAINED;
}
const char* attn_diagnosis_text(const attn_diagnosis* diagnosis) {
  return diagnosis ? diagnosis->text.c_str() : "";
}
const char* attn_diagnosis_json(const attn_diagnosis* diagnosis) {
  return diagnosis ? diagnosis->json.c_str() : "";
}
void attn_diagnosis_destroy(attn_diagnosis* diagnosis) { delete diagnosis; }

const char* attn_mistakes(void) {
  static const std::string kIds = [] {
    std::string ids;
    for (const attn::Mistake& mistake : attn::mistakes()) ids += (ids.empty() ? "" : " ") + std::string(mistake.id);
    return ids;
  }();
  return kIds.c_str();
}

const char* attn_text_data(const attn_text* text) { return text ? text->text.c_str() : ""; }
size_t attn_text_size(const attn_text* text) { return text ? text->text.size() : 0; }
void attn_text_destroy(attn_text* text) { delete text; }

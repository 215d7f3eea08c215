// Small inputs chosen so that no two known mistakes look alike, and the judge of what somebody's code made of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn/options.h"
#include "attn/tensor.h"
#include "diagnose/catalogue.h"

namespace attn::diagnose {

/// What a case asks for.
enum class ProbeKind : std::uint8_t {
  attention,   ///< of q, k, v
  strided,     ///< of q, k, v that lie as [B, N, H, D] in memory and are passed as transposed views
  rope,        ///< of q and k that are rotated first, half-split, at given positions
  projection,  ///< of x·w, whose columns are q, k and v, each of all heads
  merge,       ///< outs and natural lses of two parts, merged
};

struct ProbeTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> numbers;        ///< f32
  std::vector<std::uint8_t> truths;  ///< or bool, where these are not empty

  TensorView view() const {
    return {truths.empty() ? static_cast<const void*>(numbers.data()) : truths.data(),
            truths.empty() ? DType::f32 : DType::boolean, shape};
  }
};

struct ProbeCase {
  std::string name;   ///< "causal"
  std::string about;  ///< what it asks for, in a sentence
  ProbeKind kind = ProbeKind::attention;
  std::vector<ProbeTensor> tensors;
  /// Arguments beside the tensors, as JSON values: {"causal", "true"}.
  std::vector<std::pair<std::string, std::string>> arguments;
  std::vector<std::int64_t> out_shape;
  std::vector<std::int64_t> lengths;  ///< options.key_lengths points here
  AttentionOptions options;           ///< without tensors: those are added where it is judged
  bool alibi = false;                 ///< with the standard slopes of its heads
  bool large_scores = false;          ///< of hundreds and more

  const ProbeTensor* find(const std::string& tensor) const;
};

/// The cases, the same every time.
const std::vector<ProbeCase>& probe_cases();

/// What a case's out is, rightly or with forms of mistakes made; nothing where a form changes nothing that this case has.
struct ProbeAnswer {
  std::vector<double> out, tolerance;
};
std::optional<ProbeAnswer> answer_of(const ProbeCase& probe, std::span<const Form* const> forms,
                                     Rounding rounding = {});

/// Whether numbers are an answer, within its tolerance.
bool is_answer(const ProbeAnswer& answer, std::span<const double> numbers);

struct ProbeVerdict {
  bool right = false;                          ///< every answer that was given
  std::vector<std::string> answered, missing;  ///< cases
  std::vector<std::string> wrong;              ///< cases whose answer is not right
  std::vector<Explanation> explanations;       ///< that give every answer: single mistakes, or else pairs
  /// Where nothing explains all: the mistakes that give the most answers, and how many of the wrong ones.
  std::vector<std::pair<std::string, std::size_t>> most;
  std::map<std::string, std::vector<std::string>> by_case;  ///< and ids that explain a wrong case
};

/// Judges answers by case; those not given are left out. An explanation must give all of them, the right ones too.
ProbeVerdict judge_probe(const std::map<std::string, std::vector<double>>& answers);

}  // namespace attn::diagnose

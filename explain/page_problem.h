// A small problem as the page holds it, in its address too: a specification whose options are numbers, not words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "attn/status.h"
#include "reference/trace.h"

namespace attn::explain {

/// A problem that can be worked on a page. Its options point into it: it can't be copied.
struct PageProblem {
  reference::Problem problem;
  std::string mistake;  ///< of the catalogue, made beside the right numbers; or empty
  std::vector<std::int64_t> lengths;
  std::vector<float> slopes;

  PageProblem() = default;
  PageProblem(const PageProblem&) = delete;
  PageProblem& operator=(const PageProblem&) = delete;
};

/// {"tokens", "x", "wq", "wk", "wv"} or {"tokens", "q", "k", "v"}, and where they apply "replaced": [{"matrix", "row",
/// "values"}], rows of q, k or v that are not as x gives them; "causal": true, "offset", "scale", "softcap", "window":
/// [left, right] (null: no bound), "sink_tokens", "alibi": true (standard slopes), "length", "heads", "tiles", "cache":
/// true and "mistake". Masks, biases and sinks have no key. The problem must be one that trace() takes.
nlohmann::json page_problem_json(const reference::Problem& problem, const std::string& mistake);

/// Reads what page_problem_json() writes, and what people make of it. Errors: those of read_specification(), and a key
/// that holds something else than it should. Whether all fits together is for trace() to say.
Status read_page_problem(const std::string& json, PageProblem* page);

}  // namespace attn::explain

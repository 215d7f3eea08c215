// A trace as JSON: every number in full, for programs.
#pragma once

#include <optional>
#include <string>

#include "attn/diagnose.h"
#include "reference/trace.h"

namespace attn::explain {

/// One JSON object with the keys tokens, q, k, v, scale, scores, scaled, masked, weights, out, lse; x, wq, wk, wv
/// where the problem had them; softcapped, biased, sink_weights, tiles, steps where they apply; and saturation, the two
/// softmaxes that show why scores are scaled. Matrices are lists of rows, a row a query. With several heads, q, k,
/// v and out hold the heads side by side, and what belongs to a head is a list, one entry a head. Numbers have full
/// precision; what is not finite is "inf", "-inf" or "nan". Ends with a newline. `indent` is that of a level in blanks;
/// with none, all is on one line, for programs that wait: half the bytes.
std::string as_json(const reference::Trace& trace, std::optional<int> indent = 2);

/// With the keys mistake, mistaken_out and mistaken_weights beside them: a known mistake made in the same problem.
std::string as_json(const reference::Problem& problem, const reference::Trace& trace, const Mistake& mistake,
                    std::optional<int> indent = 2);

}  // namespace attn::explain

// A trace as JSON: every number in full, for programs.
#pragma once

#include <string>

#include "attn/diagnose.h"
#include "reference/trace.h"

namespace attn::explain {

/// One JSON object with the keys tokens, q, k, v, scale, scores, scaled, masked, weights, out, lse; x, wq, wk, wv
/// where the problem had them; softcapped, biased, sink_weights, tiles, steps where they apply; and saturation, the two
/// softmaxes that show why scores are scaled. Matrices are lists of rows, a row a query. With several heads, q, k,
/// v and out hold the heads side by side, and what belongs to a head is a list, one entry a head. Numbers have full
/// precision; what is not finite is "inf", "-inf" or "nan". Ends with a newline.
std::string as_json(const reference::Trace& trace);

/// With the keys mistake, mistaken_out and mistaken_weights beside them: a known mistake made in the same problem.
std::string as_json(const reference::Problem& problem, const reference::Trace& trace, const Mistake& mistake);

}  // namespace attn::explain

// What-ifs: changing a number of an example, or the order of its tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/status.h"
#include "reference/trace.h"

namespace attn::explain {

/// Applies a change such as "k[4471]=2,0": a row of q, k, v, x, wq, wk or wv. The name in brackets is the text of a
/// token if one matches, otherwise a row, counted from 0; rows of wq, wk and wv have numbers only. A row of q, k or
/// v replaces what the projection gives. Errors: another form, an unknown matrix, a row that is not there or a
/// token that is there twice, numbers that are not finite.
Status apply_change(const std::string& change, reference::Problem* problem);

/// Puts tokens, with their rows of x (or of q, k and v), into a new order: the row `order[i]` comes i-th. Changes
/// that were applied before move along. Errors: not each row once.
Status shuffle(const std::vector<std::int64_t>& order, reference::Problem* problem);

}  // namespace attn::explain

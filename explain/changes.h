// What-ifs: changing a number of an example, or the order of its tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/status.h"
#include "reference/trace.h"

namespace attn::explain {

/// Applies changes such as "k[4471]=2,0": a row of q, k, v, x, wq, wk or wv. The name in brackets is the text of a
/// token if one matches, otherwise a row, counted from 0; rows of wq, wk and wv have numbers only. A row of q, k or
/// v replaces what the projection gives. The problem's matrices must fit together. Errors, which leave the problem as
/// it is: another form, an unknown matrix, a row that is not there or is set twice, a token that is there twice, too
/// few or too many numbers, or one that is not finite.
Status apply_changes(const std::vector<std::string>& changes, reference::Problem* problem);

/// Puts tokens, with their rows of x (or of q, k and v), into a new order: the row `order[i]` comes i-th. Changes
/// that were applied before move along. Errors: not each row once.
Status shuffle(const std::vector<std::int64_t>& order, reference::Problem* problem);

}  // namespace attn::explain

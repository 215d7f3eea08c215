// Their weights and log-sum-exps beside ours: on which side of them a mistake lies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attn/diagnose.h"
#include "diagnose/comparison.h"

namespace attn::diagnose {

/// "[1, 8, 128, 64]".
std::string shape_text(std::span<const std::int64_t> shape);

/// Errors: weights that are not [B, Hq, N, M], or lse that is not [B, Hq, N], with as many dimensions as q has.
Status check_side_answers(const TensorView& q, const TensorView& k, const CheckOptions& check_options);

/// What they say, in sentences, from the given rows.
std::vector<std::string> look_at_side_answers(const reference::Inputs& inputs, const std::vector<RowPlace>& rows,
                                              const CheckOptions& check_options);

}  // namespace attn::diagnose

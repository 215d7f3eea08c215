// Answers against the float64 reference.
#pragma once

#include <gtest/gtest.h>

#include "engine_problem.h"
#include "reference/reference.h"

namespace attn::tests {

/// The judge's own result, weights included.
reference::Result judge(const Problem& problem);

/// Whether `out` and `lse` are the reference's within `times` the bound of reference/bound.h. NaN and infinities
/// must be met exactly.
testing::AssertionResult within_bound(const Problem& problem, const Answer& answer, double times = 1);

/// visible[((b · Hq + h) · N + i) · M + j]: which keys each row sees, by the judge's rules. Not for packed
/// sequences.
std::vector<bool> visible_keys(const Problem& problem);

}  // namespace attn::tests

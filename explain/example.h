// The worked example that comes with the program.
#pragma once

#include "reference/trace.h"

namespace attn::explain {

/// Three tokens, small whole numbers, causal: "order 4471 shipped". Every query, key, value and score is a
/// whole number: a pencil is enough.
reference::Problem worked_example();

}  // namespace attn::explain

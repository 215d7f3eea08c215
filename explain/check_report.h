// What the judge says of somebody's answer, made readable.
#pragma once

#include <string>

#include "attn/diagnose.h"

namespace attn::explain {

/// Sentences: right or wrong, where, by how much, and which mistakes explain it. `expected_scale` is what theirs should have
/// used. Ends with a newline.
std::string as_text(const Diagnosis& diagnosis, double expected_scale);

/// One JSON object with all of it; "verdict" is "right", "wrong" or "unexplained". Ends with a newline.
std::string as_json(const Diagnosis& diagnosis);

}  // namespace attn::explain

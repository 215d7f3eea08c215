// Do strided views share memory?
#pragma once

#include "src/problem.h"

namespace attn {

/// True where two elements of the view may be the same memory.
bool overlaps_itself(const View4& view);

/// True where an element of one view may be an element of the other.
bool overlap(const View4& a, const View4& b);

}  // namespace attn

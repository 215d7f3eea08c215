// A trace told as a lesson: numbered steps, every calculation written out, what to notice after each.
#pragma once

#include <string>
#include <vector>

#include "explain/document.h"
#include "reference/trace.h"

namespace attn::explain {

/// The lesson about `trace`, which is that of `problem`. `remarks` are told at the beginning: what was changed, and
/// what to look for. It ends with the weights and outputs, each row on a line of its own.
Document lesson(const reference::Problem& problem, const reference::Trace& trace,
                const std::vector<std::string>& remarks = {});

}  // namespace attn::explain

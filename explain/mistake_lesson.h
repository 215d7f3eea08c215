// A known mistake told beside the right numbers.
#pragma once

#include "attn/diagnose.h"
#include "explain/document.h"
#include "reference/trace.h"

namespace attn::explain {

/// What it is and how to mend it; then right and wrong numbers side by side, those that differ marked: of the worked example
/// or, where that can't show it, of the probe's first case that does.
Document mistake_lesson(const Mistake& mistake, const reference::Problem& problem, const reference::Trace& trace);

/// The whole catalogue, on the worked example.
Document catalogue_lesson(const reference::Problem& problem, const reference::Trace& trace);

}  // namespace attn::explain

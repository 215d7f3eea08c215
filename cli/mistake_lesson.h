// A known mistake made beside the right numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/diagnose.h"
#include "explain/document.h"
#include "reference/trace.h"

namespace attn::cli {

/// The numbers of a worked example with a mistake made in it.
struct MistakeMade {
  std::string note;       ///< what exactly was assumed
  reference::Matrix out;  ///< [N, H·Dv], heads side by side
  /// [heads][N, N]; empty where the mistake lies in q, k or v.
  std::vector<reference::Matrix> weights;
};

/// The mistake in the worked example; nothing where its numbers stay what they are, in every form of it.
std::optional<MistakeMade> make_mistake(const Mistake& mistake, const reference::Problem& problem,
                                        const reference::Trace& trace);

/// What it is and how to mend it; then right and wrong numbers side by side, those that differ marked: of the worked example
/// or, where that can't show it, of the probe's first case that does.
explain::Document mistake_lesson(const Mistake& mistake, const reference::Problem& problem,
                                 const reference::Trace& trace);

/// The whole catalogue, on the worked example.
explain::Document catalogue_lesson(const reference::Problem& problem, const reference::Trace& trace);

}  // namespace attn::cli

// A known mistake made in a worked example.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/diagnose.h"
#include "reference/trace.h"

namespace attn::diagnose {

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

/// By more than the rounding of float64; NaN differs from every number.
bool differ(double a, double b);
bool differ(const reference::Matrix& a, const reference::Matrix& b);

}  // namespace attn::diagnose

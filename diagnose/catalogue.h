// The catalogue of mistakes: what each is called, and the variants of the recipe that make it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attn/diagnose.h"
#include "diagnose/recipe.h"

namespace attn::diagnose {

/// What may go wrong before or after attention, where only a probe can show it: it carries positions, projections, strides and
/// parts.
enum class Around : std::uint8_t {
  nothing,
  rope_other_layout,   ///< interleaved pairs for half-split, or the other way round
  rope_query_at_zero,  ///< the new token is rotated at position 0
  rope_doubled,        ///< positions count twice
  rope_one_late,       ///< queries one position too far
  order_q_v_k,         ///< the projection's columns in another order
  order_k_q_v,
  order_v_q_k,
  order_k_v_q,
  order_v_k_q,
  order_by_head,   ///< q, k and v of a head side by side
  strides_of_all,  ///< memory read in its own order
  strides_of_q,
  strides_of_k,
  strides_of_v,
  lse_base_2,      ///< natural lse taken for base 2
  lse_base_e,      ///< weighed by e^(lse · log2(e)), as if it were base 2 to be converted
  lse_added,       ///< parts weighed by their lse
  parts_averaged,  ///< lse not used at all
};

/// One way in which a mistake is made.
struct Form {
  std::string note;  ///< what exactly is assumed; may be empty
  /// Changes the recipe; false where that makes no sense for these inputs.
  std::function<bool(const reference::Inputs&, Recipe*)> change_recipe = nullptr;
  /// Or changes what goes into it.
  std::function<bool(reference::Inputs*)> change_inputs = nullptr;
  /// Or something that q, k and v alone can't show.
  Around around = Around::nothing;
};

struct Entry {
  Mistake mistake;
  std::vector<Form> forms;
};

const std::vector<Entry>& catalogue();

/// The entry of one of mistakes().
const Entry& entry_of(const Mistake& mistake);

/// The notes of two forms made together: "a; b", or the one that is not empty.
std::string joined_notes(const std::string& a, const std::string& b);

/// The tensors as a mistake in their layout would read them. False where shapes do not allow it.
bool mix_heads_and_time(reference::Inputs* inputs, bool keys_and_values_too);
bool reshape_keys(reference::Inputs* inputs);
bool swap_queries_and_keys(reference::Inputs* inputs);
bool use_keys_as_values(reference::Inputs* inputs);
bool use_values_as_keys(reference::Inputs* inputs);

}  // namespace attn::diagnose

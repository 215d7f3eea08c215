// The catalogue of mistakes: what each is called, and the variants of the recipe that make it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn/diagnose.h"
#include "diagnose/recipe.h"

namespace attn::diagnose {

/// One way in which a mistake is made.
struct Form {
  std::string note;  ///< what exactly is assumed; may be empty
  /// Changes the recipe; false where that makes no sense for these inputs.
  std::function<bool(const reference::Inputs&, Recipe*)> change_recipe = nullptr;
  /// Or changes what goes into it.
  std::function<bool(reference::Inputs*)> change_inputs = nullptr;
};

struct Entry {
  Mistake mistake;
  std::vector<Form> forms;  ///< none: q, k and v alone can't show it, and attn probe does
};

const std::vector<Entry>& catalogue();

/// The tensors as a mistake in their layout would read them. False where shapes do not allow it.
bool mix_heads_and_time(reference::Inputs* inputs, bool keys_and_values_too);
bool reshape_keys(reference::Inputs* inputs);
bool swap_queries_and_keys(reference::Inputs* inputs);
bool use_keys_as_values(reference::Inputs* inputs);
bool use_values_as_keys(reference::Inputs* inputs);

}  // namespace attn::diagnose

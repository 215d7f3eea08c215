// What a head does with its weights, in JSON, one way everywhere.
#pragma once

#include <nlohmann/json.hpp>

#include "explain/json_number.h"

namespace attn::explain {

/// {layer, head, beyond, first, previous, itself} of a HeadRow or of HeadHabits.
template <class Row>
nlohmann::ordered_json head_json(const Row& row) {
  return {{"layer", row.layer},
          {"head", row.head},
          {"beyond", json_number(row.beyond)},
          {"first", json_number(row.first)},
          {"previous", json_number(row.previous)},
          {"itself", json_number(row.itself)}};
}

}  // namespace attn::explain

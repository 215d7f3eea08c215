// A map in words and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "explain/attention_map.h"
#include "model/head_roles.h"

namespace attn::cli {

/// What is told of a map.
struct MapReport {
  const explain::AttentionMap& map;
  std::optional<std::int64_t> from;               ///< the token that heads are ranked for
  std::optional<std::int64_t> head;               ///< this head alone
  std::size_t top = 10;                           ///< heads, and tokens of each
  const std::vector<float>* embedding = nullptr;  ///< of the whole text, where the model makes one
};

void print_map(const MapReport& report, std::ostream& out);
void print_map_json(const MapReport& report, std::ostream& out);

/// The table of attn map --roles, in the order of each head's strongest role but the first-token one.
void print_roles(const std::string& model, const std::vector<model::HeadRoles>& roles, std::size_t top,
                 std::ostream& out);
void print_roles_json(const std::vector<model::HeadRoles>& roles, std::ostream& out);

}  // namespace attn::cli

// Numbers in JSON, one way everywhere.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace attn::explain {

/// A JSON number, written as an integer where a double holds it exactly; "inf", "-inf" or "nan" as strings.
nlohmann::json json_number(double value);

}  // namespace attn::explain

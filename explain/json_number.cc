#include "explain/json_number.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace attn::explain {

nlohmann::json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  constexpr double kExact = 9007199254740992;  // 2^53
  if (std::abs(value) <= kExact && value == std::trunc(value)) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace attn::explain

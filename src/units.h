// How a cache holds keys and values: units of kUnitKeys tokens of one key/value head, laid out as kernels read them.
//
// | type | keys of a unit                               | values of a unit                              |
// |------|----------------------------------------------|-----------------------------------------------|
// | f32  | [d][16]                                      | [16][columns]                                 |
// | f16  | [d][16]                                      | [16][columns]                                 |
// | bf16 | [d/2][16][2]: pairs of dims                  | [8][columns][2]: pairs of tokens              |
// | q8   | f16 scales [d/32][16], then int8 [d][16]     | f16 scales [columns/32][16], int8 [16][columns] |
//
// `columns` is Dv rounded up to a multiple of kUnitKeys; what lies behind Dv is 0. Pairs make widening bf16 a shift or
// an and, and are what 16-bit product instructions take.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/dtype.h"
#include "attn/numerics.h"
#include "src/arithmetic/integers.h"
#include "src/elements.h"

namespace attn {

struct UnitLayout {
  CacheType type = CacheType::f32;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;

  std::int64_t value_columns() const { return round_up(value_dim, kUnitKeys); }
  /// Bytes of a unit of keys, and of values: multiples of a cache line.
  std::int64_t key_bytes() const { return bytes_of(key_dim); }
  std::int64_t value_bytes() const { return bytes_of(value_columns()); }
  /// q8: a unit's scales come first; where its numbers start.
  std::int64_t key_numbers() const { return scale_bytes(key_dim); }
  std::int64_t value_numbers() const { return scale_bytes(value_columns()); }

 private:
  static std::int64_t scale_bytes(std::int64_t dims) { return divide_up(dims, kScaleGroup) * kUnitKeys * 2; }
  std::int64_t bytes_of(std::int64_t dims) const {
    constexpr std::int64_t kLine = 64;
    switch (type) {
      case CacheType::f32: return dims * kUnitKeys * 4;
      case CacheType::f16: return round_up(dims * kUnitKeys * 2, kLine);
      case CacheType::bf16: return round_up(dims, 2) * kUnitKeys * 2;
      case CacheType::q8: return round_up(scale_bytes(dims) + dims * kUnitKeys, kLine);
    }
    return 0;
  }
};

/// Number d of the key of token `token` of the unit.
inline float load_key(const UnitLayout& layout, const std::byte* unit, std::int64_t token, std::int64_t d) {
  const std::int64_t at = d * kUnitKeys + token;
  switch (layout.type) {
    case CacheType::f32: return read_as<float>(unit + 4 * at);
    case CacheType::f16: return widen_f16(read_as<std::uint16_t>(unit + 2 * at));
    case CacheType::bf16:
      return widen_bf16(read_as<std::uint16_t>(unit + 4 * (d / 2 * kUnitKeys + token) + d % 2 * 2));
    case CacheType::q8: {
      const std::byte* scale = unit + 2 * (d / kScaleGroup * kUnitKeys + token);
      return static_cast<float>(read_as<std::int8_t>(unit + layout.key_numbers() + at)) *
             widen_f16(read_as<std::uint16_t>(scale));
    }
  }
  return 0;
}

/// Number c of the value of token `token` of the unit.
inline float load_value(const UnitLayout& layout, const std::byte* unit, std::int64_t token, std::int64_t c) {
  const std::int64_t columns = layout.value_columns(), at = token * columns + c;
  switch (layout.type) {
    case CacheType::f32: return read_as<float>(unit + 4 * at);
    case CacheType::f16: return widen_f16(read_as<std::uint16_t>(unit + 2 * at));
    case CacheType::bf16:
      return widen_bf16(read_as<std::uint16_t>(unit + 4 * (token / 2 * columns + c) + token % 2 * 2));
    case CacheType::q8: {
      const std::byte* scale = unit + 2 * (c / kScaleGroup * kUnitKeys + token);
      return static_cast<float>(read_as<std::int8_t>(unit + layout.value_numbers() + at)) *
             widen_f16(read_as<std::uint16_t>(scale));
    }
  }
  return 0;
}

}  // namespace attn

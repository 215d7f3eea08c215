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

  /// Where number d of a token's key lies in its unit, and number c of its value.
  std::int64_t key_at(std::int64_t token, std::int64_t d) const {
    if (type == CacheType::bf16) return 4 * (d / 2 * kUnitKeys + token) + d % 2 * 2;
    return (type == CacheType::q8 ? key_numbers() : 0) + number_bytes() * (d * kUnitKeys + token);
  }
  std::int64_t value_at(std::int64_t token, std::int64_t c) const {
    if (type == CacheType::bf16) return 4 * (token / 2 * value_columns() + c) + token % 2 * 2;
    return (type == CacheType::q8 ? value_numbers() : 0) + number_bytes() * (token * value_columns() + c);
  }
  /// q8: where the scale of a token's number lies, of keys as of values.
  static std::int64_t scale_at(std::int64_t token, std::int64_t number) {
    return 2 * (number / kScaleGroup * kUnitKeys + token);
  }

 private:
  std::int64_t number_bytes() const { return type == CacheType::f32 ? 4 : type == CacheType::q8 ? 1 : 2; }
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

/// The number at `from`; of q8 without its scale.
inline float load_number(CacheType type, const std::byte* from) {
  switch (type) {
    case CacheType::f32: return read_as<float>(from);
    case CacheType::f16: return widen_f16(read_as<std::uint16_t>(from));
    case CacheType::bf16: return widen_bf16(read_as<std::uint16_t>(from));
    case CacheType::q8: return read_as<std::int8_t>(from);
  }
  return 0;
}

inline float load_scale(const UnitLayout& layout, const std::byte* unit, std::int64_t token, std::int64_t number) {
  if (layout.type != CacheType::q8) return 1;
  return widen_f16(read_as<std::uint16_t>(unit + UnitLayout::scale_at(token, number)));
}

/// Number d of the key of token `token` of the unit.
inline float load_key(const UnitLayout& layout, const std::byte* unit, std::int64_t token, std::int64_t d) {
  return load_number(layout.type, unit + layout.key_at(token, d)) * load_scale(layout, unit, token, d);
}

/// Number c of the value of token `token` of the unit.
inline float load_value(const UnitLayout& layout, const std::byte* unit, std::int64_t token, std::int64_t c) {
  return load_number(layout.type, unit + layout.value_at(token, c)) * load_scale(layout, unit, token, c);
}

}  // namespace attn

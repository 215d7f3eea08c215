// One element of any dtype, read and written.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "attn/dtype.h"
#include "src/arithmetic/scalar.h"

namespace attn {

inline float widen_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

inline float widen_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  std::uint32_t magnitude = std::uint32_t{bits & 0x7FFFu} << 13;
  if (magnitude >= 0x7C00u << 13) {
    magnitude += (255u - 31u) << 23;  // infinity and NaN
  } else if (magnitude >= 0x0400u << 13) {
    magnitude += (127u - 15u) << 23;
  } else {  // 0 and denormals: mantissa·2^−24, exact
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(bits & 0x3FFu) * 0x1p-24f);
  }
  return std::bit_cast<float>(sign | magnitude);
}

inline std::uint16_t narrow_bf16(float value) {
  if (value != value) return 0x7FC0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline std::uint16_t narrow_f16(float value) {
  if (value != value) return 0x7E00;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // 2^16 and more
  if (magnitude < 0x38800000u) {
    // Below 2^−14 a half counts in steps of 2^−24. Adding 0.5 puts those steps at the float's last bit, so that the
    // addition rounds (to nearest, ties to even).
    const float counted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(counted) - 0x3F000000u));
  }
  magnitude += 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((magnitude - ((127u - 15u) << 23)) >> 13));
}

template <class T>
T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void write_as(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// The element at `from`, widened (or, f64 into f32, which no checked call asks for, rounded).
template <class T>
T load_element(const std::byte* from, DType dtype) {
  switch (dtype) {
    case DType::f32: return static_cast<T>(read_as<float>(from));
    case DType::f64: return static_cast<T>(read_as<double>(from));
    case DType::f16: return static_cast<T>(widen_f16(read_as<std::uint16_t>(from)));
    case DType::bf16: return static_cast<T>(widen_bf16(read_as<std::uint16_t>(from)));
    case DType::boolean: return static_cast<T>(read_as<std::uint8_t>(from) != 0);
  }
  return T(0);
}

/// A negative number may round to the −0 of 16 bits: stored as +0, too.
inline std::uint16_t canonical_half(std::uint16_t bits) { return bits == 0x8000 ? std::uint16_t{0} : bits; }

/// Rounds to the dtype; zeros are stored as +0 and NaN as the one quiet NaN.
template <class T>
void store_element(std::byte* to, DType dtype, T value) {
  switch (dtype) {
    case DType::f32: write_as(to, canonical(static_cast<float>(value))); break;
    case DType::f64: write_as(to, canonical(static_cast<double>(value))); break;
    case DType::f16: write_as(to, canonical_half(narrow_f16(static_cast<float>(value)))); break;
    case DType::bf16: write_as(to, canonical_half(narrow_bf16(static_cast<float>(value)))); break;
    case DType::boolean: break;
  }
}

}  // namespace attn

// The element types of tensors, and exact conversions of the 16-bit ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/export.h"

namespace ATTN_EXPORT attn {

enum class DType : std::uint8_t {
  f32,
  f64,
  f16,      ///< IEEE 754 binary16
  bf16,     ///< the upper half of an f32
  boolean,  ///< one byte, 0 is false; masks only
};

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::boolean: return 1;
  }
  return 0;
}

/// "f32", "f64", "f16", "bf16" or "bool".
const char* name_of(DType dtype);

/// How a KV cache holds its numbers.
enum class CacheType : std::uint8_t {
  f32,
  bf16,
  f16,
  q8,  ///< int8 times an f16 scale that kScaleGroup numbers of a token's head share; 8.5 bits a number where a head has a multiple of
       ///< 64 of them, more otherwise
};

/// Neighbouring numbers of a row that share a scale in CacheType::q8. Large enough that scales take 6 % of the memory,
/// small enough that one large number coarsens few others (the group of ggml's Q8_0).
inline constexpr std::int64_t kScaleGroup = 32;

/// "f32", "bf16", "f16" or "q8".
const char* name_of(CacheType type);

constexpr bool is_float(DType dtype) { return dtype != DType::boolean; }

/// Exact: every f16 and bf16 value is an f32 value. A NaN stays a NaN.
float f16_to_float(std::uint16_t bits);
float bf16_to_float(std::uint16_t bits);

/// Round to nearest, ties to even; too large becomes infinity, NaN becomes the quiet NaN (0x7E00, 0x7FC0).
std::uint16_t float_to_f16(float value);
std::uint16_t float_to_bf16(float value);

}  // namespace attn

#include "attn/dtype.h"

#include "src/elements.h"

namespace attn {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::boolean: return "bool";
  }
  return "unknown";
}

const char* name_of(CacheType type) {
  switch (type) {
    case CacheType::f32: return "f32";
    case CacheType::bf16: return "bf16";
    case CacheType::f16: return "f16";
    case CacheType::q8: return "q8";
  }
  return "unknown";
}

float f16_to_float(std::uint16_t bits) { return widen_f16(bits); }
float bf16_to_float(std::uint16_t bits) { return widen_bf16(bits); }
std::uint16_t float_to_f16(float value) { return narrow_f16(value); }
std::uint16_t float_to_bf16(float value) { return narrow_bf16(value); }

}  // namespace attn

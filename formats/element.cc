// One table says everything about an element type.
#include "formats/element.h"

#include <array>

namespace attn::formats {
namespace {

struct ElementTypeFacts {
  std::size_t size;
  const char* name;
  const char* npy_code;
  const char* safetensors_name;
  std::optional<DType> dtype;
};

// In the order of the enumeration.
constexpr std::array<ElementTypeFacts, 13> kFacts = {{
    {4, "f32", "f4", "F32", DType::f32},
    {8, "f64", "f8", "F64", DType::f64},
    {2, "f16", "f2", "F16", DType::f16},
    {2, "bf16", nullptr, "BF16", DType::bf16},
    {1, "bool", "b1", "BOOL", DType::boolean},
    {1, "i8", "i1", "I8", std::nullopt},
    {2, "i16", "i2", "I16", std::nullopt},
    {4, "i32", "i4", "I32", std::nullopt},
    {8, "i64", "i8", "I64", std::nullopt},
    {1, "u8", "u1", "U8", std::nullopt},
    {2, "u16", "u2", "U16", std::nullopt},
    {4, "u32", "u4", "U32", std::nullopt},
    {8, "u64", "u8", "U64", std::nullopt},
}};

const ElementTypeFacts& facts_of(ElementType type) { return kFacts[static_cast<std::size_t>(type)]; }

std::optional<ElementType> find(const char* ElementTypeFacts::*column, std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    const char* entry = kFacts[i].*column;
    if (entry != nullptr && name == entry) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

}  // namespace

std::size_t size_of(ElementType type) { return facts_of(type).size; }

const char* name_of(ElementType type) { return facts_of(type).name; }

const char* npy_code_of(ElementType type) { return facts_of(type).npy_code; }

const char* safetensors_name_of(ElementType type) { return facts_of(type).safetensors_name; }

std::optional<ElementType> element_type_of_npy_code(std::string_view code) {
  return find(&ElementTypeFacts::npy_code, code);
}

std::optional<ElementType> element_type_of_safetensors_name(std::string_view name) {
  return find(&ElementTypeFacts::safetensors_name, name);
}

std::optional<DType> dtype_of(ElementType type) { return facts_of(type).dtype; }

ElementType element_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ElementType::f32;
    case DType::f64: return ElementType::f64;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    case DType::boolean: break;
  }
  return ElementType::boolean;
}

}  // namespace attn::formats

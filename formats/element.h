// The element types that tensor files hold, under the names that each format gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "attn/dtype.h"

namespace attn::formats {

enum class ElementType : std::uint8_t { f32, f64, f16, bf16, boolean, i8, i16, i32, i64, u8, u16, u32, u64 };

/// Bytes of one element.
std::size_t size_of(ElementType type);

/// "f32", …, "bool", "i8", …, "u64".
const char* name_of(ElementType type);

/// NumPy's kind and size without the byte order, as in "f4"; nullptr for bf16, which NumPy doesn't have.
const char* npy_code_of(ElementType type);

/// "F32", …, "BOOL", "I8", …, "U64".
const char* safetensors_name_of(ElementType type);

/// The inverses of the two above; nothing where the name is none of ours.
std::optional<ElementType> element_type_of_npy_code(std::string_view code);
std::optional<ElementType> element_type_of_safetensors_name(std::string_view name);

/// The type that attention computes with; nothing for integers.
std::optional<DType> dtype_of(ElementType type);

ElementType element_type_of(DType dtype);

}  // namespace attn::formats

// GGUF files, versions 2 and 3: facts about a model and its tensors, many of them in blocks of few bits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attn/status.h"
#include "formats/bytes.h"

namespace attn::formats {

/// The tensor types that are read, under GGUF's numbers.
enum class GgufType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,   ///< 32 numbers: f16 scale, 4 bits each, less 8
  q4_1 = 3,   ///< 32 numbers: f16 scale and least number, 4 bits each
  q8_0 = 8,   ///< 32 numbers: f16 scale, 8 bits each
  q4_k = 12,  ///< 256 numbers: two f16, 8 scales and least numbers of 6 bits, 4 bits each
  q6_k = 14,  ///< 256 numbers: f16, 16 scales of 8 bits, 6 bits each, less 32
  bf16 = 30,
};

/// "F32", "F16", "Q4_0", …
const char* name_of(GgufType type);

/// Numbers of a block, and its bytes. Types without blocks have blocks of one.
struct GgufBlock {
  std::int64_t numbers, bytes;
};
GgufBlock block_of(GgufType type);

/// A value of the header. Whole numbers of every size are i64 (u64 above 2^63 − 1 is refused), real ones f64, and arrays
/// lists of either or of texts.
using GgufValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<double>, std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  GgufType type = GgufType::f32;
  std::vector<std::int64_t> shape;  ///< outermost first, as everywhere here: GGUF writes them the other way round
  const unsigned char* data = nullptr;

  std::int64_t columns() const { return shape.back(); }
  std::int64_t rows() const;
};

struct Gguf {
  std::map<std::string, GgufValue, std::less<>> facts;
  std::map<std::string, GgufTensor, std::less<>> tensors;
  Bytes file;  ///< keeps the mapping alive
};

/// Maps the file and reads its header; tensors stay where they are. Errors, in one sentence that names the file and the
/// place: it is no GGUF file, of another version, cut short; a count, length or product that its bytes can't hold; a key or
/// name that is empty, too long or there twice; a type that is not known; an alignment or offset against the rules;
/// tensors that overlap. No claim is allocated for before it was held against the bytes that are there.
Status read_gguf(const std::string& path, Gguf* gguf);

/// Numbers of a row that share a step and a least number; 0 for types without blocks.
std::int64_t group_of(GgufType type);

/// A row in blocks as what it is made of: number i is step·codes[i] + least of group i / group_of(type), rounded once (the
/// product is exact, or `least` is −0 and changes nothing). Room: columns() codes, a step and a least number a group. For
/// types with group_of() alone.
void read_codes(const GgufTensor& tensor, std::int64_t row, std::int8_t* codes, float* steps, float* leasts);

/// Row `row` (of all dimensions but the last) as f32; `to` has room for tensor.columns().
void dequantise_row(const GgufTensor& tensor, std::int64_t row, float* to);

}  // namespace attn::formats

// Rows of GGUF tensors as f32.
#include "attn/dtype.h"
#include "formats/gguf.h"

namespace attn::formats {
namespace {

float half(const unsigned char* from) { return f16_to_float(load<std::uint16_t>(from)); }

void q8_0(const unsigned char* block, float* to) {
  const float scale = half(block);
  for (int i = 0; i < 32; ++i) to[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
}

// The lower halves of the bytes are the first 16 numbers, the upper ones the others.
void q4_0(const unsigned char* block, float* to) {
  const float scale = half(block);
  for (int i = 0; i < 16; ++i) {
    to[i] = scale * static_cast<float>((block[2 + i] & 15) - 8);
    to[i + 16] = scale * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

void q4_1(const unsigned char* block, float* to) {
  const float scale = half(block), least = half(block + 2);
  for (int i = 0; i < 16; ++i) {
    to[i] = scale * static_cast<float>(block[4 + i] & 15) + least;
    to[i + 16] = scale * static_cast<float>(block[4 + i] >> 4) + least;
  }
}

// Eight scales and eight least numbers of 6 bits in 12 bytes: four of each in the lower 6 bits of the first eight bytes;
// the others have 4 bits in the last four bytes and 2 in the upper bits of the first eight.
struct ScaleAndLeast {
  int scale, least;
};

ScaleAndLeast scale_of(const unsigned char* packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4, packed[group + 4] >> 4 | (packed[group] >> 6)
                                                                                                 << 4};
}

// Two groups of 32 share 32 bytes: the first has the lower halves.
void q4_k(const unsigned char* block, float* to) {
  const float scale = half(block), least = half(block + 2);
  for (int pair = 0; pair < 4; ++pair) {
    const unsigned char* numbers = block + 16 + 32 * pair;
    for (int upper = 0; upper < 2; ++upper) {
      const ScaleAndLeast group = scale_of(block + 4, 2 * pair + upper);
      const float step = scale * static_cast<float>(group.scale), below = least * static_cast<float>(group.least);
      for (int i = 0; i < 32; ++i)
        *to++ = step * static_cast<float>(upper ? numbers[i] >> 4 : numbers[i] & 15) - below;
    }
  }
}

// Of each 128 numbers the lower 4 bits lie in 64 bytes and the upper 2 in 32, four runs of 32 side by side.
void q6_k(const unsigned char* block, float* to) {
  const float scale = half(block + 208);
  for (int part = 0; part < 2; ++part) {
    const unsigned char *low = block + 64 * part, *high = block + 128 + 32 * part, *scales = block + 192 + 8 * part;
    for (int run = 0; run < 4; ++run) {
      for (int i = 0; i < 32; ++i) {
        const int byte = low[i + 32 * (run % 2)], four = run < 2 ? byte & 15 : byte >> 4;
        const int number = (four | (high[i] >> (2 * run) & 3) << 4) - 32;
        const auto step = static_cast<float>(static_cast<std::int8_t>(scales[2 * run + i / 16]));
        *to++ = scale * step * static_cast<float>(number);
      }
    }
  }
}

void dequantise_block(GgufType type, const unsigned char* block, float* to) {
  switch (type) {
    case GgufType::f32: *to = load<float>(block); break;
    case GgufType::f16: *to = half(block); break;
    case GgufType::bf16: *to = bf16_to_float(load<std::uint16_t>(block)); break;
    case GgufType::q8_0: q8_0(block, to); break;
    case GgufType::q4_0: q4_0(block, to); break;
    case GgufType::q4_1: q4_1(block, to); break;
    case GgufType::q4_k: q4_k(block, to); break;
    case GgufType::q6_k: q6_k(block, to); break;
  }
}

}  // namespace

const char* name_of(GgufType type) {
  switch (type) {
    case GgufType::f32: return "F32";
    case GgufType::f16: return "F16";
    case GgufType::bf16: return "BF16";
    case GgufType::q8_0: return "Q8_0";
    case GgufType::q4_0: return "Q4_0";
    case GgufType::q4_1: return "Q4_1";
    case GgufType::q4_k: return "Q4_K";
    case GgufType::q6_k: return "Q6_K";
  }
  return "unknown";
}

GgufBlock block_of(GgufType type) {
  switch (type) {
    case GgufType::f32: return {1, 4};
    case GgufType::f16:
    case GgufType::bf16: return {1, 2};
    case GgufType::q8_0: return {32, 34};
    case GgufType::q4_0: return {32, 18};
    case GgufType::q4_1: return {32, 20};
    case GgufType::q4_k: return {256, 144};
    case GgufType::q6_k: return {256, 210};
  }
  return {1, 1};
}

std::int64_t GgufTensor::rows() const {
  std::int64_t count = 1;
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) count *= shape[d];
  return count;
}

void dequantise_row(const GgufTensor& tensor, std::int64_t row, float* to) {
  const GgufBlock block = block_of(tensor.type);
  const std::int64_t blocks = tensor.columns() / block.numbers;
  for (std::int64_t b = 0; b < blocks; ++b)
    dequantise_block(tensor.type, tensor.data + (row * blocks + b) * block.bytes, to + b * block.numbers);
}

}  // namespace attn::formats

// Rows of GGUF tensors as f32.
#include <cstring>

#include "attn/dtype.h"
#include "formats/gguf.h"

namespace attn::formats {
namespace {

// Neutral: x + −0 is x, also where x is −0.
constexpr float kNothing = -0.0F;

float half(const unsigned char* from) { return f16_to_float(load<std::uint16_t>(from)); }

std::int8_t code(int number) { return static_cast<std::int8_t>(number); }

// Where the parts of a row go, a block at a time.
struct Parts {
  std::int8_t* codes;
  float *steps, *leasts;

  void add_group(float step, float least) {
    *steps++ = step;
    *leasts++ = least;
  }
};

// The lower halves of 16 bytes are the first 16 numbers, the upper ones the others.
void split_bytes(const unsigned char* bytes, int less, Parts* parts) {
  for (int i = 0; i < 16; ++i) {
    parts->codes[i] = code((bytes[i] & 15) - less);
    parts->codes[i + 16] = code((bytes[i] >> 4) - less);
  }
  parts->codes += 32;
}

void q8_0(const unsigned char* block, Parts* parts) {
  parts->add_group(half(block), kNothing);
  std::memcpy(parts->codes, block + 2, 32);
  parts->codes += 32;
}

void q4_0(const unsigned char* block, Parts* parts) {
  parts->add_group(half(block), kNothing);
  split_bytes(block + 2, 8, parts);
}

void q4_1(const unsigned char* block, Parts* parts) {
  parts->add_group(half(block), half(block + 2));
  split_bytes(block + 4, 0, parts);
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
void q4_k(const unsigned char* block, Parts* parts) {
  const float scale = half(block), least = half(block + 2);
  for (int group = 0; group < 8; ++group) {
    const ScaleAndLeast of = scale_of(block + 4, group);
    parts->add_group(scale * static_cast<float>(of.scale), -(least * static_cast<float>(of.least)));
    const unsigned char* bytes = block + 16 + 32 * (group / 2);
    for (int i = 0; i < 32; ++i) *parts->codes++ = code(group % 2 ? bytes[i] >> 4 : bytes[i] & 15);
  }
}

// Of each 128 numbers the lower 4 bits lie in 64 bytes and the upper 2 in 32, four runs of 32 side by side.
void q6_k(const unsigned char* block, Parts* parts) {
  const float scale = half(block + 208);
  for (int group = 0; group < 16; ++group)
    parts->add_group(scale * static_cast<float>(static_cast<std::int8_t>(block[192 + group])), kNothing);
  for (int part = 0; part < 2; ++part) {
    const unsigned char *low = block + 64 * part, *high = block + 128 + 32 * part;
    for (int run = 0; run < 4; ++run) {
      for (int i = 0; i < 32; ++i) {
        const int byte = low[i + 32 * (run % 2)], four = run < 2 ? byte & 15 : byte >> 4;
        *parts->codes++ = code((four | (high[i] >> (2 * run) & 3) << 4) - 32);
      }
    }
  }
}

void split_block(GgufType type, const unsigned char* block, Parts* parts) {
  switch (type) {
    case GgufType::q8_0: return q8_0(block, parts);
    case GgufType::q4_0: return q4_0(block, parts);
    case GgufType::q4_1: return q4_1(block, parts);
    case GgufType::q4_k: return q4_k(block, parts);
    case GgufType::q6_k: return q6_k(block, parts);
    case GgufType::f32:
    case GgufType::f16:
    case GgufType::bf16: return;
  }
}

float plain_number(GgufType type, const unsigned char* from) {
  if (type == GgufType::f32) return load<float>(from);
  return type == GgufType::f16 ? half(from) : bf16_to_float(load<std::uint16_t>(from));
}

const unsigned char* row_of(const GgufTensor& tensor, std::int64_t row) {
  const GgufBlock block = block_of(tensor.type);
  return tensor.data + row * (tensor.columns() / block.numbers) * block.bytes;
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

std::int64_t group_of(GgufType type) {
  if (block_of(type).numbers == 1) return 0;
  return type == GgufType::q6_k ? 16 : 32;
}

void read_codes(const GgufTensor& tensor, std::int64_t row, std::int8_t* codes, float* steps, float* leasts) {
  const GgufBlock block = block_of(tensor.type);
  const unsigned char* at = row_of(tensor, row);
  Parts parts{codes, steps, leasts};
  for (std::int64_t done = 0; done < tensor.columns(); done += block.numbers, at += block.bytes)
    split_block(tensor.type, at, &parts);
}

void dequantise_row(const GgufTensor& tensor, std::int64_t row, float* to) {
  const GgufBlock block = block_of(tensor.type);
  const unsigned char* at = row_of(tensor, row);
  if (block.numbers == 1) {
    for (std::int64_t i = 0; i < tensor.columns(); ++i) to[i] = plain_number(tensor.type, at + i * block.bytes);
    return;
  }
  std::int8_t codes[256];
  float steps[16], leasts[16];
  const std::int64_t group = group_of(tensor.type);
  for (std::int64_t done = 0; done < tensor.columns(); done += block.numbers, at += block.bytes) {
    Parts parts{codes, steps, leasts};
    split_block(tensor.type, at, &parts);
    for (std::int64_t i = 0; i < block.numbers; ++i)
      *to++ = steps[i / group] * static_cast<float>(codes[i]) + leasts[i / group];
  }
}

}  // namespace attn::formats

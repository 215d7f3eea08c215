#include "src/cache/store_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace attn {
namespace {

// kScaleGroup numbers of a row at a time: what shares a scale in q8.
constexpr std::int64_t kChunk = kScaleGroup;

// Numbers [column, column + kChunk) of a row, 0 behind its end.
void widen_chunk(const SourceRows& rows, std::int64_t row, std::int64_t column, std::int64_t columns, float* to) {
  const auto size = static_cast<std::int64_t>(size_of(rows.dtype));
  const std::byte* from = rows.data + (row * rows.row_stride + column * rows.column_stride) * size;
  const std::int64_t count = std::min(kChunk, columns - column), step = rows.column_stride * size;
  if (rows.dtype == DType::f32 && step == sizeof(float)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = load_element<float>(from + i * step, rows.dtype);
  }
  std::fill(to + count, to + kChunk, 0.0F);
}

// The least f16 that is not below `value` ≥ 0: so that no number of the group needs more than 127 of it.
std::uint16_t round_up_to_f16(float value) {
  const std::uint16_t bits = narrow_f16(value);
  return widen_f16(bits) < value ? static_cast<std::uint16_t>(bits + 1) : bits;
}

struct Quantised {
  std::int8_t numbers[kChunk];
  std::uint16_t scale;
};

// x ≈ number · scale, |number| ≤ 127. A group that holds a NaN or an infinity, or more than f16 scales reach, is NaN.
Quantised quantise(const float* chunk) {
  Quantised result{};
  float largest = 0;
  bool finite = true;
  for (std::int64_t i = 0; i < kChunk; ++i) {
    largest = std::max(largest, std::fabs(chunk[i]));
    finite = finite && std::fabs(chunk[i]) <= std::numeric_limits<float>::max();
  }
  result.scale = round_up_to_f16(largest / 127.0F);
  const float scale = widen_f16(result.scale);
  if (!finite || scale > 65504.0F) {
    result.scale = 0x7E00;
    std::fill_n(result.numbers, kChunk, std::int8_t{1});
    return result;
  }
  if (scale == 0) return result;
  constexpr float kRounder = 0x1.8p23F;  // adding it rounds to a whole number, ties to even
  for (std::int64_t i = 0; i < kChunk; ++i)
    result.numbers[i] =
        static_cast<std::int8_t>(static_cast<std::int32_t>((chunk[i] / scale + kRounder) - kRounder));
  return result;
}

// Calls `store(token, column, chunk)` for the chunks of all rows.
template <class Store>
void for_chunks(const SourceRows& rows, std::int64_t first, std::int64_t count, std::int64_t columns,
                const Store& store) {
  for (std::int64_t column = 0; column < columns; column += kChunk) {
    for (std::int64_t row = 0; row < count; ++row) {
      float chunk[kChunk];
      widen_chunk(rows, row, column, columns, chunk);
      store(first + row, column, chunk);
    }
  }
}

// Rounds to a type that has no scales.
void store_number(CacheType type, float number, std::byte* to) {
  switch (type) {
    case CacheType::f32: return write_as(to, number);
    case CacheType::f16: return write_as(to, narrow_f16(number));
    case CacheType::bf16: return write_as(to, narrow_bf16(number));
    case CacheType::q8: return;
  }
}

// Where the numbers of a chunk go: pairs of them lie `pair` apart, and the second of a pair `second` behind the first.
struct Places {
  std::byte* first;
  std::int64_t second, pair;

  std::byte* operator[](std::int64_t i) const { return first + i / 2 * pair + i % 2 * second; }
};

template <CacheType kType>
void store_numbers(const float* chunk, std::int64_t count, const Places& places) {
  for (std::int64_t i = 0; i < count; ++i) store_number(kType, chunk[i], places[i]);
}

void store_chunk(CacheType type, const float* chunk, std::int64_t count, const Places& places, std::byte* scale) {
  switch (type) {
    case CacheType::f32: return store_numbers<CacheType::f32>(chunk, count, places);
    case CacheType::f16: return store_numbers<CacheType::f16>(chunk, count, places);
    case CacheType::bf16: return store_numbers<CacheType::bf16>(chunk, count, places);
    case CacheType::q8: break;
  }
  const Quantised group = quantise(chunk);
  for (std::int64_t i = 0; i < count; ++i) write_as(places[i], group.numbers[i]);
  write_as(scale, group.scale);
}

}  // namespace

void store_keys(const UnitLayout& layout, const SourceRows& rows, std::int64_t first, std::int64_t count,
                std::byte* unit) {
  for_chunks(rows, first, count, layout.key_dim, [&](std::int64_t token, std::int64_t column, const float* chunk) {
    const std::int64_t at = layout.key_at(token, column);
    const Places places{unit + at, layout.key_at(token, column + 1) - at, layout.key_at(token, column + 2) - at};
    store_chunk(layout.type, chunk, std::min(kChunk, layout.key_dim - column), places,
                unit + UnitLayout::scale_at(token, column));
  });
}

void store_values(const UnitLayout& layout, const SourceRows& rows, std::int64_t first, std::int64_t count,
                  std::byte* unit) {
  for_chunks(rows, first, count, layout.value_dim,
             [&](std::int64_t token, std::int64_t column, const float* chunk) {
               const std::int64_t at = layout.value_at(token, column);
               const Places places{unit + at, layout.value_at(token, column + 1) - at,
                                   layout.value_at(token, column + 2) - at};
               store_chunk(layout.type, chunk, std::min(kChunk, layout.value_columns() - column), places,
                           unit + UnitLayout::scale_at(token, column));
             });
}

void clear_tokens(const PageLayout& layout, std::int64_t tokens, const Page& page) {
  for_units(layout, tokens, [&](std::int64_t head, std::int64_t offset, std::size_t bytes) {
    std::memset(page.head(head) + offset, 0, bytes);
  });
}

void copy_tokens(const PageLayout& layout, const Page& from, std::int64_t tokens, const Page& to) {
  for_units(layout, tokens, [&](std::int64_t head, std::int64_t offset, std::size_t bytes) {
    std::memcpy(to.head(head) + offset, from.head(head) + offset, bytes);
  });
}

}  // namespace attn

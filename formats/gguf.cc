// The header of GGUF files, read strictly: every claim is held against the bytes that are left.
#include "formats/gguf.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace attn::formats {
namespace {

constexpr std::uint64_t kLongestName = 65535, kMostDimensions = 4;
constexpr std::uint64_t kDefaultAlignment = 32, kLargestAlignment = 1 << 20;

enum FactType : std::uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

// Bytes of a value at least: of texts and arrays their lengths.
std::size_t least_bytes(std::uint32_t type) {
  switch (type) {
    case kU8:
    case kI8:
    case kBool: return 1;
    case kU16:
    case kI16: return 2;
    case kU32:
    case kI32:
    case kF32: return 4;
    default: return 8;
  }
}

// Reads from front to back; once something is missing it says what, and everything else reads as 0.
class Cursor {
 public:
  Cursor(const std::string& path, const Bytes& file) : path_(path), file_(file) {}

  template <class Number>
  Number read() {
    if (!have(sizeof(Number), "a number")) return {};
    const auto number = load<Number>(file_.data + at_);
    at_ += sizeof(Number);
    return number;
  }

  std::string_view read_text(const char* what) {
    const auto length = read<std::uint64_t>();
    if (!have(length, what)) return {};
    const std::string_view text = file_.text().substr(at_, length);
    at_ += length;
    return text;
  }

  /// A count of things that take `bytes_each` or more.
  std::uint64_t read_count(std::size_t bytes_each, const char* what) {
    const auto count = read<std::uint64_t>();
    if (failed() || count <= left() / bytes_each) return failed() ? 0 : count;
    fail("claims " + std::to_string(count) + " " + what + ", but only " + std::to_string(left()) +
         " bytes are left");
    return 0;
  }

  void fail(const std::string& fault) {
    if (failed()) return;
    fault_ = fault;
  }
  bool failed() const { return !fault_.empty(); }
  Status status() const {
    if (!failed()) return {};
    return Status::error(path_ + ": " + fault_ + "; fetch or convert the file again");
  }

  std::size_t at() const { return at_; }
  std::size_t left() const { return file_.size - at_; }

 private:
  bool have(std::uint64_t bytes, const char* what) {
    if (failed()) return false;
    if (bytes <= left()) return true;
    fail("is cut short within " + std::string(what) + " at byte " + std::to_string(at_));
    return false;
  }

  const std::string& path_;
  const Bytes& file_;
  std::size_t at_ = 0;
  std::string fault_;
};

std::int64_t read_whole(Cursor* cursor, std::uint32_t type) {
  switch (type) {
    case kU8: return cursor->read<std::uint8_t>();
    case kI8: return cursor->read<std::int8_t>();
    case kU16: return cursor->read<std::uint16_t>();
    case kI16: return cursor->read<std::int16_t>();
    case kU32: return cursor->read<std::uint32_t>();
    case kI32: return cursor->read<std::int32_t>();
    case kI64: return cursor->read<std::int64_t>();
    case kBool: {
      const auto byte = cursor->read<std::uint8_t>();
      if (byte > 1) cursor->fail("has a truth value of " + std::to_string(byte) + ", which is neither 0 nor 1");
      return byte;
    }
    default: break;
  }
  const auto number = cursor->read<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    cursor->fail("has the number " + std::to_string(number) + ", which is beyond 2^63 - 1");
  return static_cast<std::int64_t>(number);
}

double read_real(Cursor* cursor, std::uint32_t type) {
  return type == kF32 ? static_cast<double>(cursor->read<float>()) : cursor->read<double>();
}

GgufValue read_array(Cursor* cursor, const std::string& key) {
  const auto type = cursor->read<std::uint32_t>();
  if (type == kArray || type > kF64) {
    cursor->fail("the fact " + in_quotes(key) + " is a list of type " + std::to_string(type) +
                 ", and lists of numbers, truth values and texts are read");
    return {};
  }
  const std::uint64_t count = cursor->read_count(least_bytes(type), "list entries");
  if (type == kString) {
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i < count && !cursor->failed(); ++i) texts.emplace_back(cursor->read_text("a text"));
    return texts;
  }
  if (type == kF32 || type == kF64) {
    std::vector<double> numbers;
    for (std::uint64_t i = 0; i < count && !cursor->failed(); ++i) numbers.push_back(read_real(cursor, type));
    return numbers;
  }
  std::vector<std::int64_t> numbers;
  for (std::uint64_t i = 0; i < count && !cursor->failed(); ++i) numbers.push_back(read_whole(cursor, type));
  return numbers;
}

GgufValue read_value(Cursor* cursor, const std::string& key) {
  const auto type = cursor->read<std::uint32_t>();
  switch (type) {
    case kString: return std::string(cursor->read_text("a text"));
    case kArray: return read_array(cursor, key);
    case kBool: return read_whole(cursor, type) != 0;
    case kF32:
    case kF64: return read_real(cursor, type);
    default: break;
  }
  if (type > kF64)
    cursor->fail("the fact " + in_quotes(key) + " has type " + std::to_string(type) + ", which is none");
  return cursor->failed() ? GgufValue() : read_whole(cursor, type);
}

std::string read_name(Cursor* cursor, const char* what) {
  const std::string_view name = cursor->read_text(what);
  if (!cursor->failed() && (name.empty() || name.size() > kLongestName)) {
    cursor->fail(std::string(what) + " has " + std::to_string(name.size()) + " bytes, and 1 to " +
                 std::to_string(kLongestName) + " are allowed");
  }
  return std::string(name);
}

void read_facts(Cursor* cursor, std::uint64_t count, Gguf* gguf) {
  for (std::uint64_t i = 0; i < count && !cursor->failed(); ++i) {
    const std::string key = read_name(cursor, "a key");
    GgufValue value = cursor->failed() ? GgufValue() : read_value(cursor, key);
    if (!gguf->facts.emplace(key, std::move(value)).second)
      cursor->fail("has the key " + in_quotes(key) + " twice");
  }
}

std::optional<GgufType> type_of(std::uint32_t number) {
  for (const GgufType type : {GgufType::f32, GgufType::f16, GgufType::q4_0, GgufType::q4_1, GgufType::q8_0,
                              GgufType::q4_k, GgufType::q6_k, GgufType::bf16}) {
    if (number == static_cast<std::uint32_t>(type)) return type;
  }
  return std::nullopt;
}

// A tensor as the header describes it: where its bytes lie within the data.
struct Place {
  GgufTensor tensor;
  std::uint64_t offset = 0, bytes = 0;
};

// The product of the sizes; 0 where it is beyond 2^63 − 1 or a size is 0.
std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size <= 0 || __builtin_mul_overflow(count, size, &count)) return 0;
  }
  return count;
}

void check_shape(Cursor* cursor, Place* place) {
  const GgufTensor& tensor = place->tensor;
  const GgufBlock block = block_of(tensor.type);
  const std::int64_t count = count_of(tensor.shape);
  std::int64_t bytes = 0;
  if (count == 0 || __builtin_mul_overflow(count / block.numbers, block.bytes, &bytes)) {
    return cursor->fail("the tensor " + in_quotes(tensor.name) +
                        " has a size of 0, or more numbers than 63 bits count");
  }
  if (tensor.columns() % block.numbers != 0) {
    return cursor->fail("the tensor " + in_quotes(tensor.name) + " has rows of " +
                        std::to_string(tensor.columns()) + " numbers, but " + name_of(tensor.type) +
                        " goes in blocks of " + std::to_string(block.numbers));
  }
  place->bytes = static_cast<std::uint64_t>(bytes);
}

Place read_place(Cursor* cursor) {
  Place place;
  GgufTensor& tensor = place.tensor;
  tensor.name = read_name(cursor, "a tensor's name");
  const auto dimensions = cursor->read<std::uint32_t>();
  if (!cursor->failed() && (dimensions < 1 || dimensions > kMostDimensions)) {
    cursor->fail("the tensor " + in_quotes(tensor.name) + " has " + std::to_string(dimensions) +
                 " dimensions, and 1 to 4 are read");
  }
  for (std::uint32_t d = 0; d < dimensions && !cursor->failed(); ++d)
    tensor.shape.insert(tensor.shape.begin(), cursor->read<std::int64_t>());
  const auto number = cursor->read<std::uint32_t>();
  place.offset = cursor->read<std::uint64_t>();
  if (cursor->failed()) return place;
  if (const auto type = type_of(number)) {
    tensor.type = *type;
    check_shape(cursor, &place);
  } else {
    cursor->fail("the tensor " + in_quotes(tensor.name) + " has type " + std::to_string(number) +
                 ", and F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K and Q6_K are read");
  }
  return place;
}

std::uint64_t alignment_of(Cursor* cursor, const Gguf& gguf) {
  const auto found = gguf.facts.find("general.alignment");
  if (found == gguf.facts.end()) return kDefaultAlignment;
  const auto* number = std::get_if<std::int64_t>(&found->second);
  const auto alignment = number ? static_cast<std::uint64_t>(*number) : 0;
  if (alignment >= 1 && alignment <= kLargestAlignment && (alignment & (alignment - 1)) == 0) return alignment;
  cursor->fail("general.alignment is no power of two from 1 to " + std::to_string(kLargestAlignment));
  return kDefaultAlignment;
}

// Each tensor lies aligned within the data, and none on another.
void place_tensors(Cursor* cursor, std::vector<Place>* places, std::uint64_t alignment, const Bytes& data,
                   Gguf* gguf) {
  std::sort(places->begin(), places->end(), [](const Place& a, const Place& b) { return a.offset < b.offset; });
  std::uint64_t end = 0;
  for (Place& place : *places) {
    const std::string name = in_quotes(place.tensor.name);
    if (place.offset % alignment != 0)
      cursor->fail("the tensor " + name + " starts at " + std::to_string(place.offset) +
                   ", which is no multiple of " + std::to_string(alignment));
    if (place.offset < end) cursor->fail("the tensor " + name + " lies on another one");
    if (place.offset > data.size || place.bytes > data.size - place.offset) {
      cursor->fail("the tensor " + name + " ends at " + std::to_string(place.offset) + " + " +
                   std::to_string(place.bytes) + ", but there are " + std::to_string(data.size) + " bytes of data");
    }
    if (cursor->failed()) return;
    end = place.offset + place.bytes;
    place.tensor.data = data.data + place.offset;
    if (!gguf->tensors.emplace(place.tensor.name, place.tensor).second)
      cursor->fail("has the tensor " + name + " twice");
  }
}

void read_header(Cursor* cursor, Gguf* gguf) {
  constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
  if (cursor->read<std::uint32_t>() != kMagic) return cursor->fail("is no GGUF file");
  const auto version = cursor->read<std::uint32_t>();
  if (version != 2 && version != 3)
    return cursor->fail("is GGUF of version " + std::to_string(version) + ", and 2 and 3 are read");
  constexpr std::size_t kLeastTensor = 8 + 1 + 4 + 8 + 4 + 8, kLeastFact = 8 + 1 + 4 + 1;
  const std::uint64_t tensors = cursor->read_count(kLeastTensor, "tensors");
  const std::uint64_t facts = cursor->read_count(kLeastFact, "facts");
  read_facts(cursor, facts, gguf);
  const std::uint64_t alignment = alignment_of(cursor, *gguf);
  std::vector<Place> places;
  for (std::uint64_t i = 0; i < tensors && !cursor->failed(); ++i) places.push_back(read_place(cursor));
  if (cursor->failed() || places.empty()) return;
  const std::size_t start = (cursor->at() + alignment - 1) / alignment * alignment;
  if (start > gguf->file.size) return cursor->fail("is cut short before its data");
  place_tensors(cursor, &places, alignment, gguf->file.slice(start, gguf->file.size - start), gguf);
}

}  // namespace

Status read_gguf(const std::string& path, Gguf* gguf) {
  Gguf read;
  ATTN_RETURN_IF_ERROR(map_file(path, &read.file));
  Cursor cursor(path, read.file);
  read_header(&cursor, &read);
  ATTN_RETURN_IF_ERROR(cursor.status());
  *gguf = std::move(read);
  return {};
}

}  // namespace attn::formats

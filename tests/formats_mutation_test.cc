// Damaged files: whatever is cut off or changed, the answer is an error or a tensor that can be read to its last
// element, and no memory to speak of is taken.
#include "allocations.h"
#include "formats_samples.h"

namespace attn::formats {
namespace {

constexpr std::size_t kLittleMemory = 256 * 1024;

// Returns whether it was read.
bool survives(const std::string& argument, const std::string& what) {
  Tensor tensor;
  largest_allocation = 0;
  const Status status = read_tensor(argument, &tensor);
  EXPECT_LT(largest_allocation, kLittleMemory) << what;
  if (!status.ok()) {
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << what;
    return false;
  }
  const auto bytes = byte_count(tensor.shape, size_of(tensor.type));
  EXPECT_TRUE(bytes.has_value()) << what;
  EXPECT_EQ(elements_of(tensor).size(), static_cast<std::size_t>(*bytes)) << what;
  return true;
}

struct Sample {
  std::string file;
  std::string name;  // with the ':', where the file needs one
  std::string bytes;
};

std::vector<Sample> samples() {
  const std::string fortran = npy(npy_dict(">f8", "(2, 2)", true), std::string(32, '\7'), 2);
  const Zip stored = {.members = {{.name = "q.npy", .contents = small_npy()}}};
  const Zip mixed = {.members = {{.name = "q.npy", .contents = small_npy(), .deflate = true, .zip64 = true},
                                 {.name = "k.npy", .contents = fortran, .zip64 = true}},
                     .zip64_end = true};
  const std::string header = R"({"__metadata__":{"a":"b"},"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("k":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}} )";
  return {{"t.npy", "", small_npy()},      {"t.npy", "", fortran},
          {"t.npz", "", stored.finish()},  {"t.npz", ":q", mixed.finish()},
          {"t.npz", ":k", mixed.finish()}, {"t.safetensors", ":q", safetensors(header, "0123456789")}};
}

TEST(Mutation, NoTruncatedFileIsRead) {
  const Directory directory;
  for (const Sample& sample : samples()) {
    EXPECT_TRUE(survives(directory.file(sample.file, sample.bytes) + sample.name, "the whole file"));
    for (std::size_t length = 0; length < sample.bytes.size(); ++length) {
      const std::string path = directory.file(sample.file, sample.bytes.substr(0, length));
      EXPECT_FALSE(survives(path + sample.name, sample.file + " cut to " + std::to_string(length)));
    }
  }
}

TEST(Mutation, EveryByteMayChange) {
  const Directory directory;
  for (const Sample& sample : samples()) {
    for (std::size_t position = 0; position < sample.bytes.size(); ++position) {
      const auto old = static_cast<unsigned char>(sample.bytes[position]);
      for (const int value : {0x00, 0x01, 0x7F, 0x80, 0xFF, old ^ 0x01, old ^ 0x80, old + 1, int{'9'}, int{'('}}) {
        std::string bytes = sample.bytes;
        bytes[position] = static_cast<char>(value);
        survives(
            directory.file(sample.file, bytes) + sample.name,
            sample.file + sample.name + ", byte " + std::to_string(position) + " set to " + std::to_string(value));
      }
    }
  }
}

TEST(Mutation, NoChangeOfAnNpzMembersContentsPasses) {
  const Directory directory;
  const std::string good = Zip{.members = {{.name = "q.npy", .contents = small_npy()}}}.finish();
  const std::size_t start = 30 + 5;
  for (std::size_t position = start; position < start + small_npy().size(); ++position) {
    std::string bytes = good;
    bytes[position] = static_cast<char>(bytes[position] ^ 0x10);
    EXPECT_FALSE(survives(directory.file("t.npz", bytes), "byte " + std::to_string(position)));
  }
}

TEST(Mutation, FourBytesAtATimeMayChange) {
  const Directory directory;
  for (const Sample& sample : samples()) {
    for (std::size_t position = 0; position + 4 <= sample.bytes.size(); ++position) {
      for (const std::uint32_t value : {0x00000000U, 0xFFFFFFFFU, 0x7FFFFFFFU, 0x40000000U}) {
        std::string bytes = sample.bytes;
        bytes.replace(position, 4, bytes_of(value));
        survives(directory.file(sample.file, bytes) + sample.name, sample.file + sample.name + ", bytes from " +
                                                                       std::to_string(position) + " set to " +
                                                                       std::to_string(value));
      }
    }
  }
}

TEST(Mutation, AClaimOfGigabytesTakesNoMemory) {
  const Directory directory;
  const std::string claim = npy(npy_dict(">f4", "(1000000000,)"), bytes_of(1.0F));
  EXPECT_FALSE(survives(directory.file("t.npy", claim), "big-endian .npy"));
  const std::int64_t missing = 4'000'000'000 - 4;
  for (const bool deflate : {false, true}) {
    const Zip zip = {
        .members = {
            {.name = "q.npy", .contents = claim, .deflate = deflate, .zip64 = true, .size_error = missing}}};
    EXPECT_FALSE(survives(directory.file("t.npz", zip.finish()), "member"));
  }
  const std::string header = R"({"q":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}})";
  EXPECT_FALSE(survives(directory.file("t.safetensors", safetensors(header, "1234")), "safetensors"));
}

}  // namespace
}  // namespace attn::formats

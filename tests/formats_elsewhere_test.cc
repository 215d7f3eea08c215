// Files of other makers: the ones that conformance cases consist of.
#include "formats_samples.h"

namespace attn::formats {
namespace {

TEST(Shared, EveryNpyFileLoads) {
  const std::filesystem::path shared(ATTN_SHARED);
  if (!std::filesystem::exists(shared)) GTEST_SKIP() << "skipped: the conformance files are not there";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared)) {
    if (entry.path().extension() != ".npy") continue;
    const Tensor tensor = read(entry.path());
    const auto bytes = byte_count(tensor.shape, size_of(tensor.type));
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(elements_of(tensor).size(), static_cast<std::size_t>(*bytes));
    ++files;
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace attn::formats

// Files of caches: cut, changed or made up, they are refused; and a save that fails leaves nothing.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <zlib.h>

#include "attn/kv_cache.h"
#include "cache_problem.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

namespace fs = std::filesystem;

class CacheFile : public testing::Test {
 protected:
  CacheFile() : folder_(fs::temp_directory_path() / ("attn-cache-file-" + std::to_string(std::random_device()()))) {
    fs::create_directory(folder_);
    path_ = (folder_ / "cache").string();
    EXPECT_TRUE(KvCache::create({.kv_heads = 1, .key_dim = 3, .value_dim = 5, .page_tokens = 16}, &cache_).ok());
    const Tensor k = normal_tensor(DType::f32, {1, 40, 3}, 1), v = normal_tensor(DType::f32, {1, 40, 5}, 2);
    const SequenceId id = new_sequence(cache_.get());
    EXPECT_TRUE(cache_->append(id, k.view(), v.view()).ok());
    SequenceId copy = -1;
    EXPECT_TRUE(cache_->fork(id, &copy).ok());
    EXPECT_TRUE(cache_->drop_before(copy, 35, 2).ok());
    EXPECT_TRUE(cache_->save(path_).ok());
    std::ifstream file(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  ~CacheFile() override { fs::remove_all(folder_); }

  std::string load(const std::string& bytes, std::optional<std::int64_t> most_bytes = std::nullopt) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::unique_ptr<KvCache> cache;
    const Status status = KvCache::load(path_, &cache, most_bytes);
    EXPECT_EQ(status.ok(), cache != nullptr);
    return status.message();
  }

  // The bytes with a checksum that fits them.
  static std::string sealed(std::string bytes) {
    const std::size_t end = bytes.size() - 4;
    const auto sum =
        static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(end)));
    bytes.replace(end, 4, reinterpret_cast<const char*>(&sum), 4);
    return bytes;
  }

  std::unique_ptr<KvCache> cache_;
  fs::path folder_;
  std::string path_, bytes_;
};

TEST_F(CacheFile, IsReadAsItWasWritten) {
  EXPECT_EQ(load(bytes_), "");
  EXPECT_EQ(sealed(bytes_), bytes_);
  std::unique_ptr<KvCache> cache;
  ASSERT_TRUE(KvCache::load(path_, &cache).ok());
  const KvCacheUsage before = cache_->usage(), after = cache->usage();
  EXPECT_EQ(after.pages_in_use, before.pages_in_use);
  EXPECT_EQ(after.tokens, before.tokens);
  EXPECT_EQ(cache->length(0), 40);
  EXPECT_EQ(new_sequence(cache.get()), new_sequence(cache_.get())) << "ids would come twice";
}

TEST_F(CacheFile, CutAnywhereIsRefused) {
  for (std::size_t length = 0; length < bytes_.size(); ++length)
    ASSERT_NE(load(bytes_.substr(0, length)), "") << length << " of " << bytes_.size() << " bytes";
  EXPECT_NE(load(bytes_ + '\0'), "");
}

TEST_F(CacheFile, WithAnyBitChangedIsRefused) {
  for (std::size_t at = 0; at < bytes_.size(); ++at) {
    std::string changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ 1 << at % 8);
    ASSERT_NE(load(changed), "") << "byte " << at;
  }
}

// With a checksum that fits: whatever the numbers claim, there is an answer, and no crash or huge allocation.
TEST_F(CacheFile, OfHostileNumbersIsAnswered) {
  std::mt19937_64 random(1);
  const std::int64_t values[] = {-1, 0, 1, 2, 15, 16, 40, 1 << 20, std::int64_t{1} << 40, INT64_MAX, INT64_MIN};
  const std::size_t numbers = bytes_.size() / 8 - 2;
  int refused = 0, tried = 0;
  for (std::size_t number = 2; number < std::min<std::size_t>(numbers, 60); ++number) {
    for (const std::int64_t value : values) {
      std::string changed = bytes_;
      changed.replace(number * 8, 8, reinterpret_cast<const char*>(&value), 8);
      refused += load(sealed(changed), 1 << 24) != "";
      ++tried;
    }
  }
  EXPECT_GT(refused, tried / 3);
  for (int i = 0; i < effort(2000); ++i) {
    std::string changed = bytes_;
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n) changed[16 + random() % 300] = static_cast<char>(random());
    if (i % 2 == 0) {
      (void)load(sealed(changed), 1 << 24);
    } else {
      (void)load(sealed(changed));
    }
  }
}

TEST_F(CacheFile, ThatIsNoneIsRefusedByName) {
  EXPECT_NE(load("hello").find("is no cache"), std::string::npos);
  std::string newer = bytes_;
  newer[16] = 9;
  EXPECT_NE(load(sealed(newer)).find("has version 9, and version 1 is read here"), std::string::npos);
  EXPECT_NE(load(bytes_, 100).find("most_bytes: 100"), std::string::npos);
  std::string far = bytes_;
  const std::int64_t last = INT64_MAX;
  far.replace(16 + 6 * 8, 8, reinterpret_cast<const char*>(&last), 8);
  EXPECT_NE(load(sealed(far)).find("next id"), std::string::npos);
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::unique_ptr<KvCache> cache;
  EXPECT_NE(KvCache::load((folder_ / "nothing").string(), &cache).message().find("check the path"),
            std::string::npos);
  EXPECT_NE(KvCache::load(folder_.string(), &cache).message(), "");
  EXPECT_NE(KvCache::load(pipe, &cache).message(), "");
  EXPECT_NE(cache_->save(pipe).message(), "");
  fs::remove(pipe);
}

// What another sequence had in a page is in no file.
TEST_F(CacheFile, HoldsNothingOfReleasedSequences) {
  std::unique_ptr<KvCache> cache;
  ASSERT_TRUE(KvCache::create({.kv_heads = 1, .key_dim = 4, .page_tokens = 64}, &cache).ok());
  Tensor secret(DType::f32, {1, 64, 4});
  secret.fill([] { return 1234.5; });
  const Tensor zeros = normal_tensor(DType::f32, {1, 64, 4}, 1, 0),
               one = normal_tensor(DType::f32, {1, 1, 4}, 1, 0);
  const SequenceId a = new_sequence(cache.get()), b = new_sequence(cache.get());
  ASSERT_TRUE(cache->append(a, secret.view(), secret.view()).ok());
  ASSERT_TRUE(cache->append(b, zeros.view(), zeros.view()).ok());
  ASSERT_TRUE(cache->drop_before(b, 64).ok());
  ASSERT_TRUE(cache->release(a).ok());
  ASSERT_TRUE(cache->truncate(b, 50).ok());
  ASSERT_TRUE(cache->append(b, one.view(), one.view()).ok());
  ASSERT_TRUE(cache->save(path_).ok());
  std::ifstream file(path_, std::ios::binary);
  const std::string saved{std::istreambuf_iterator<char>(file), {}};
  const float number = 1234.5F;
  EXPECT_EQ(saved.find(std::string(reinterpret_cast<const char*>(&number), sizeof number)), std::string::npos);
}

TEST_F(CacheFile, ThatCannotBeWrittenLeavesNothing) {
  EXPECT_NE(cache_->save((folder_ / "no" / "where").string()).message(), "");
  EXPECT_NE(cache_->save(folder_.string()).message(), "") << "a directory was replaced";
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1U) << "temporary files stay behind";
}

}  // namespace
}  // namespace attn::tests

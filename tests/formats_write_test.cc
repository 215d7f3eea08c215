// Writers: what is written reads back the same, and a file is there whole or not at all.
#include "formats/write.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "formats_samples.h"

namespace attn::formats {
namespace {

const std::vector<std::string> kExtensions = {".npy", ".npz", ".safetensors"};
constexpr std::array kDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::boolean};

// Bytes 1, 2, 3, …: whatever an element means, no two that are near each other are equal.
std::string counting(std::size_t count) {
  std::string bytes(count, '\0');
  std::iota(bytes.begin(), bytes.end(), '\1');
  return bytes;
}

std::vector<std::int64_t> shape_of(const TensorView& view) {
  return {view.shape.begin(), view.shape.begin() + view.rank};
}

TEST(Write, EveryTypeAndShapeReadsBack) {
  const Directory directory;
  for (const auto& extension : kExtensions) {
    for (const DType dtype : kDTypes) {
      if (dtype == DType::bf16 && extension != ".safetensors") continue;
      for (const std::vector<std::int64_t>& shape :
           std::vector<std::vector<std::int64_t>>{{}, {0}, {3}, {2, 3}, {4, 0, 2}, {2, 1, 3, 2}}) {
        const auto count = static_cast<std::size_t>(*byte_count(shape, size_of(dtype)));
        const std::string elements = counting(count);
        const std::string path = directory.path("t" + extension);
        const Status status = write_tensor(path, TensorView(elements.data(), dtype, shape));
        ASSERT_TRUE(status.ok()) << status.message();
        const Tensor tensor = read(path);
        EXPECT_EQ(tensor.shape, shape) << path;
        EXPECT_EQ(dtype_of(tensor.type), dtype) << path;
        EXPECT_EQ(elements_of(tensor), elements) << path;
      }
    }
  }
  EXPECT_EQ(directory.names().size(), kExtensions.size()) << "nothing temporary is left";
}

TEST(Write, GathersAnyStrides) {
  const Directory directory;
  for (const DType dtype : kDTypes) {
    const std::string memory = counting(64 * size_of(dtype));
    const char* const middle = memory.data() + 32 * size_of(dtype);
    for (const TensorView& view : {TensorView(middle, dtype, {2, 3, 2}, {6, 2, 1}),     // as it lies
                                   TensorView(middle, dtype, {2, 3, 2}, {1, 4, 2}),     // permuted
                                   TensorView(middle, dtype, {2, 3, 2}, {-6, 2, -1}),   // backwards
                                   TensorView(middle, dtype, {2, 3, 2}, {0, 1, 0})}) {  // broadcast
      ASSERT_TRUE(write_tensor(directory.path("t.safetensors"), view).ok());
      const Tensor strided = {"",
                              element_type_of(dtype),
                              shape_of(view),
                              {view.strides.begin(), view.strides.begin() + view.rank},
                              view.data,
                              nullptr};
      EXPECT_EQ(elements_of(read(directory.path("t.safetensors"))), elements_of(strided));
    }
  }
}

TEST(Write, IsWhatNumpyWrites) {
  const Directory directory;
  const std::string elements = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(write_tensor(directory.path("t.npy"), TensorView(elements.data(), DType::f32, {2, 3})).ok());
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string written = directory.contents("t.npy");
  EXPECT_EQ(written, npy(dict + std::string(117 - dict.size(), ' '), elements));
}

TEST(Write, NamesTheTensor) {
  const Directory directory;
  const std::string elements = bytes_of(1.0F);
  const TensorView view(elements.data(), DType::f32, {1});
  const std::string name = "layer \"0\".k";
  for (const std::string extension : {".npz", ".safetensors"}) {
    const std::string path = directory.path("t" + extension);
    ASSERT_TRUE(write_tensor(path, view, name).ok());
    EXPECT_EQ(elements_of(read(path + ":" + name)), elements);
    ASSERT_TRUE(write_tensor(path, view).ok());
    EXPECT_EQ(elements_of(read(path + ":out")), elements);
    EXPECT_NE(write_tensor(path, view, "").message().find("give one of 1 to 1000"), std::string::npos);
  }
}

TEST(Write, RefusesWhatItCannotWrite) {
  const Directory directory;
  const auto error = [&](const std::string& path, DType dtype = DType::f32, std::vector<std::int64_t> shape = {1}) {
    OutputFile file;
    const Status status = OutputFile::create(path, dtype, shape, &file);
    EXPECT_FALSE(status.ok()) << path;
    EXPECT_EQ(file.view().data, nullptr);
    return status.message();
  };
  EXPECT_NE(error(directory.path("t.txt")).find("must be .npy, .npz or .safetensors"), std::string::npos);
  EXPECT_NE(error("").find("must be .npy, .npz or .safetensors"), std::string::npos);
  EXPECT_NE(error("/dev/null").find("must be .npy, .npz or .safetensors"), std::string::npos);
  EXPECT_NE(error(directory.path("t.npy"), DType::bf16).find("can't hold bf16"), std::string::npos);
  EXPECT_NE(error(directory.path("t.npz"), DType::bf16).find("write .safetensors"), std::string::npos);
  EXPECT_NE(error("-", DType::bf16).find("can't hold bf16"), std::string::npos);
  EXPECT_NE(error(directory.path("t.npy"), DType::f32, {-1}).find("the shape [-1] of f32"), std::string::npos);
  EXPECT_NE(error(directory.path("t.npy"), DType::f32, {1LL << 61}).find("less than 2^63"), std::string::npos);
  EXPECT_NE(error(directory.path("t.npy"), DType::f32, {1, 1, 1, 1, 1}).find("up to 4 sizes"), std::string::npos);
  EXPECT_NE(error(directory.path("none/t.npy"))
                .find("there is no directory " + directory.path("none") + "; make it first"),
            std::string::npos);
  EXPECT_NE(error(directory.path("t.npy"), DType::f32, {1LL << 55}).find("there is no room for its"),
            std::string::npos);
  std::filesystem::create_directory(directory.path("d.npy"));
  EXPECT_NE(error(directory.path("d.npy")).find("is a directory or a device"), std::string::npos);
  EXPECT_EQ(directory.names(), std::vector<std::string>{"d.npy"});
}

TEST(OutputFile, AppearsWithCommitOnly) {
  const Directory directory;
  for (const auto& extension : kExtensions) {
    const std::string path = directory.file("t" + extension, "before");
    {
      OutputFile file;
      ASSERT_TRUE(OutputFile::create(path, DType::f32, std::vector<std::int64_t>{2}, &file).ok());
      std::memcpy(file.view().data, bytes_of(std::vector<float>{1, 2}).data(), 8);
      EXPECT_EQ(directory.names().size(), 2U) << "a temporary file beside the target";
      EXPECT_EQ(directory.contents("t" + extension), "before");
    }
    EXPECT_EQ(directory.names().size(), 1U);
    EXPECT_EQ(directory.contents("t" + extension), "before");

    OutputFile file;
    ASSERT_TRUE(OutputFile::create(path, DType::f32, std::vector<std::int64_t>{2}, &file).ok());
    EXPECT_EQ(std::string(static_cast<const char*>(file.view().data), 8), std::string(8, '\0'));
    std::memcpy(file.view().data, bytes_of(std::vector<float>{1, 2}).data(), 8);
    ASSERT_TRUE(file.commit().ok());
    EXPECT_EQ(elements_of(read(path)), bytes_of(std::vector<float>{1, 2}));
    EXPECT_FALSE(file.commit().ok());
    EXPECT_EQ(file.view().data, nullptr);
    std::filesystem::remove(path);
  }
}

TEST(OutputFile, ReplacesWhatALinkPointsToAndKeepsPermissions) {
  const Directory directory;
  const std::string path = directory.file("t.npy", "before");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  std::filesystem::create_symlink("t.npy", directory.path("link.npy"));
  const std::string elements = bytes_of(1.0F);
  ASSERT_TRUE(write_tensor(directory.path("link.npy"), TensorView(elements.data(), DType::f32, {1})).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(directory.path("link.npy")));
  EXPECT_EQ(elements_of(read(path)), elements);
  struct stat facts {};
  ASSERT_EQ(stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640U);
}

TEST(OutputFile, MayReplaceAFileThatIsBeingRead) {
  const Directory directory;
  const std::string path = directory.file("t.npy", small_npy());
  const Tensor before = read(path);
  TensorView view;
  ASSERT_TRUE(view_of(before, &view).ok());
  ASSERT_TRUE(write_tensor(path, TensorView(view.data, DType::f32, {3}, {0})).ok());
  EXPECT_EQ(elements_of(before), bytes_of(std::vector<float>{1, 2, 3}));
  EXPECT_EQ(elements_of(read(path)), bytes_of(std::vector<float>{1, 1, 1}));
}

TEST(OutputFile, MovesWithItsFile) {
  const Directory directory;
  OutputFile first;
  ASSERT_TRUE(OutputFile::create(directory.path("a.npy"), DType::f32, std::vector<std::int64_t>{1}, &first).ok());
  OutputFile second = std::move(first);
  ASSERT_TRUE(OutputFile::create(directory.path("b.npy"), DType::f32, std::vector<std::int64_t>{1}, &first).ok());
  first = std::move(second);  // b is given up
  ASSERT_TRUE(first.commit().ok());
  EXPECT_EQ(directory.names(), std::vector<std::string>{"a.npy"});
}

TEST(OutputFile, AFileTooLargeForTheLimitLeavesNothing) {
  const Directory directory;
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string elements(8192, 'x');
  const Status status = write_tensor(directory.path("t.npy"), TensorView(elements.data(), DType::boolean, {8192}));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(status.message().find("there is no room for its 8320 bytes"), std::string::npos) << status.message();
  EXPECT_TRUE(directory.names().empty());
}

TEST(OutputFile, ADashIsStandardOutput) {
  const Directory directory;
  const std::string elements = bytes_of(std::vector<float>{1, 2, 3});
  const int kept = dup(STDOUT_FILENO);
  std::fflush(stdout);
  ASSERT_NE(std::freopen(directory.path("t.npy").c_str(), "wb", stdout), nullptr);
  const Status status = write_tensor("-", TensorView(elements.data(), DType::f32, {3}));
  std::fflush(stdout);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(elements_of(read(directory.path("t.npy"))), elements);
}

}  // namespace
}  // namespace attn::formats

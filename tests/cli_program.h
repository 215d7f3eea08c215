// Runs the program as a user would, and holds what it said; a scratch directory to run it in.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attn/status.h"
#include "attn/tensor.h"
#include "formats/read.h"
#include "formats/write.h"

namespace attn::cli {

/// What a program left behind.
struct Outcome {
  int exit_code = -1;  ///< 128 + the signal where one ended it
  std::string out, err;
};

inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// A directory of its own for each test, removed at its end. The program runs in it.
class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "attn-cli-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    said_in_ = directory_.string() + "-said";
    std::filesystem::create_directory(said_in_);
  }
  ~CliTest() override {
    std::filesystem::remove_all(directory_);
    std::filesystem::remove_all(said_in_);
  }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }

  /// The names of all files in the directory.
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.insert(entry.path().filename());
    return names;
  }

  /// Runs any program in the directory with nothing on standard input.
  Outcome execute(const std::vector<std::string>& command) const {
    std::vector<char*> arguments;
    for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) become(arguments);
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents_of(said_in_ / "out"),
            contents_of(said_in_ / "err")};
  }

  /// Runs `attn ARGUMENTS…`.
  Outcome attn(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), ATTN_PROGRAM);
    return execute(arguments);
  }

  /// Writes an .npy file of f32 numbers.
  void write(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& numbers) const {
    write_view(name, TensorView(numbers.data(), DType::f32, shape));
  }

  void write_view(const std::string& name, const TensorView& view) const {
    const Status status = formats::write_tensor(path(name).string(), view);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  /// Reads a tensor back, whatever its float type, row-major.
  std::vector<double> read(const std::string& argument, std::vector<std::int64_t>* shape = nullptr) const {
    formats::Tensor tensor;
    const Status status =
        formats::read_tensor(argument.starts_with('/') ? argument : path(argument).string(), &tensor);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
    if (shape != nullptr) *shape = tensor.shape;
    std::size_t count = 1;
    for (const std::int64_t size : tensor.shape) count *= static_cast<std::size_t>(size);
    if (tensor.type == formats::ElementType::f64) return copied<double>(tensor.data, count);
    if (tensor.type == formats::ElementType::f32) return copied<float>(tensor.data, count);
    ADD_FAILURE() << argument << " holds " << formats::name_of(tensor.type);
    return {};
  }

 private:
  template <class Number>
  static std::vector<double> copied(const void* data, std::size_t count) {
    std::vector<Number> numbers(count);  // in an archive they lie at any address
    if (count > 0) std::memcpy(numbers.data(), data, count * sizeof(Number));
    return {numbers.begin(), numbers.end()};
  }

  [[noreturn]] void become(const std::vector<char*>& arguments) const {
    const auto redirect = [](const std::string& file, int flags, int descriptor) {
      const int opened = open(file.c_str(), flags, 0600);
      if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
    };
    redirect("/dev/null", O_RDONLY, STDIN_FILENO);
    redirect((said_in_ / "out").string(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect((said_in_ / "err").string(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    if (chdir(directory_.c_str()) == 0) execvp(arguments[0], arguments.data());
    _exit(127);
  }

  std::filesystem::path directory_;
  std::filesystem::path said_in_;  // beside the directory, so that files() shows only what the program wrote
};

}  // namespace attn::cli

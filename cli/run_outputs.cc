// The files that attn run writes: all of them, or none.
#include "cli/run_outputs.h"

#include <filesystem>

#include "cli/verbs.h"

namespace attn::cli {
namespace {

// Also where one is a link to the other, or where neither exists yet.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  if (std::filesystem::equivalent(a, b, failed)) return true;
  // Absolute first: of a relative path that doesn't exist, weakly_canonical tidies nothing.
  const auto full_a = std::filesystem::weakly_canonical(std::filesystem::absolute(a), failed);
  if (failed) return a == b;
  const auto full_b = std::filesystem::weakly_canonical(std::filesystem::absolute(b), failed);
  return !failed && full_a == full_b;
}

}  // namespace

void check_destinations(std::span<const Destination> destinations, std::span<const std::string> inputs) {
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    const auto& [flag, path] = destinations[i];
    if (path.empty()) continue;
    for (const std::string& input : inputs) {
      if (same_file(path, input)) {
        throw Failure{2, std::string(flag) + ": " + path + " is an input of this run; write to another file"};
      }
    }
    for (const Destination& other : destinations.subspan(i + 1)) {
      if (!other.path.empty() && same_file(path, other.path)) {
        throw Failure{2, std::string(other.flag) + ": " + other.path + " is where " + flag +
                             " goes already; write to another file"};
      }
    }
  }
}

OutputView RunOutputs::create(const Destination& destination, DType dtype, const std::vector<std::int64_t>& shape,
                              const char* name) {
  formats::OutputFile& file = files_.emplace_back();
  const Status status = formats::OutputFile::create(destination.path, dtype, shape, &file, name);
  if (!status.ok()) throw Failure{2, std::string(destination.flag) + ": " + status.message()};
  written_.push_back(Written{destination.path, dtype, shape});
  return file.view();
}

void RunOutputs::commit() {
  for (formats::OutputFile& file : files_) require(file.commit());
}

}  // namespace attn::cli

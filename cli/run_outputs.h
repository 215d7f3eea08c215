// The files that attn run writes: all of them, or none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attn/tensor.h"
#include "cli/run_report.h"
#include "formats/write.h"

namespace attn::cli {

/// A path that a flag names; an empty path means that the flag was not given.
struct Destination {
  const char* flag;
  std::string path;
};

/// Throws Failure{2} where a destination is one of the files that are read, or where two are the same file.
void check_destinations(std::span<const Destination> destinations, std::span<const std::string> inputs);

/// Results that come into being beside each other; nothing has its name before commit().
class RunOutputs {
 public:
  /// Opens a file of this shape, to be filled through the view that comes back. Throws Failure{2}.
  OutputView create(const Destination& destination, DType dtype, const std::vector<std::int64_t>& shape,
                    const char* name);

  /// Gives all files their names. Throws Failure{2}.
  void commit();

  /// What create() was asked for, in that order.
  std::span<const Written> written() const { return written_; }

 private:
  std::vector<formats::OutputFile> files_;
  std::vector<Written> written_;
};

}  // namespace attn::cli

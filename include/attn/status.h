// Success, or one sentence that says what is wrong and what would be right.
#pragma once

#include <string>
#include <utility>

#include "attn/export.h"

namespace ATTN_EXPORT attn {

/// The result of every call that can fail. An error names the argument, what it was, the rule and the
/// fix, as in `k: head dim 64, but q has 128; both are Dk and must be equal`. A call that returns an
/// error has left every output as it was.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;

  /// A failure; `sentence` must not be empty.
  static Status error(std::string sentence) {
    Status status;
    status.message_ = std::move(sentence);
    return status;
  }

  bool ok() const { return message_.empty(); }

  /// Empty on success.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace attn

/// Hands an error on to the caller; goes on after success.
#define ATTN_RETURN_IF_ERROR(expression)       \
  do {                                         \
    ::attn::Status attn_status = (expression); \
    if (!attn_status.ok()) return attn_status; \
  } while (false)

// What the files of the C interface share: C structs as C++'s, and Statuses as codes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attn/attn.h"
#include "attn/attn_c.h"

namespace attn::c {

/// Keeps the sentence for attn_message() and returns the code.
int fail(int code, const std::string& sentence);

inline int code_of(const Status& status) {
  return status.ok() ? fail(ATTN_OK, "") : fail(ATTN_INVALID, status.message());
}

/// Runs a call; what C++ throws ends here.
template <class Call>
int guarded(const Call& call) {
  try {
    return code_of(call());
  } catch (const std::bad_alloc&) {
    return fail(ATTN_OUT_OF_MEMORY, "not enough memory for this call");
  } catch (const std::exception& error) {
    return fail(ATTN_INVALID, error.what());
  }
}

inline Status missing(const char* name) {
  return Status::error(std::string(name) + ": NULL, but it is needed; give it");
}
inline Status no_size(const char* name) {
  return Status::error(std::string(name) + ": its size is 0; call the _init function first");
}

TensorView input(const attn_tensor* tensor);
OutputView output(const attn_tensor* tensor);
inline std::optional<TensorView> optional_input(const attn_tensor* tensor) {
  return tensor ? std::optional(input(tensor)) : std::nullopt;
}
inline std::optional<OutputView> optional_output(const attn_tensor* tensor) {
  return tensor ? std::optional(output(tensor)) : std::nullopt;
}

/// Everything as `defaults` has it, as far as the caller's struct goes; what a newer header has behind that is zero.
template <class Struct>
void init_sized(Struct defaults, std::size_t size, Struct* to) {
  if (!to || size < sizeof(std::size_t)) return;
  defaults.size = size;
  std::memset(to, 0, size);
  std::memcpy(to, &defaults, std::min(size, sizeof(Struct)));
}

/// What the caller set of a struct; the rest is as `defaults` has it. Errors: a struct without a size, or one of a newer header
/// that sets what is not known here.
template <class Struct>
Status read_sized(const char* name, const Struct* given, const Struct& defaults, Struct* read) {
  *read = defaults;
  if (!given) return {};
  if (given->size < sizeof(std::size_t)) return no_size(name);
  std::memcpy(read, given, std::min(given->size, sizeof(Struct)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < given->size; ++i) {
    if (bytes[i] != 0)
      return Status::error(std::string(name) + ": sets an option that attn " + kVersion +
                           " does not know; leave it as _init made it, or use a newer library");
  }
  return {};
}
template <class Struct>
void write_sized(const Struct& made, Struct* to) {
  constexpr std::size_t kSize = sizeof(std::size_t);
  const std::size_t size = std::min(to->size, sizeof(Struct));
  std::memcpy(reinterpret_cast<char*>(to) + kSize, reinterpret_cast<const char*>(&made) + kSize, size - kSize);
}

/// A host's pool behind C++'s interface.
class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(const attn_executor& host) : host_(host) {}
  int threads() const override { return host_.threads; }
  double least_work() const override { return host_.least_work; }
  void run(std::int64_t count, void (*task)(void*, std::int64_t, int), void* context) override {
    host_.run(host_.context, count, task, context);
  }

 private:
  attn_executor host_;
};

/// Options as C++ takes them, with the host's executor.
struct Options {
  AttentionOptions options;
  std::optional<HostExecutor> host;
};
Status read_options(const attn_options* given, Options* to);

/// Runs a call with options; what must be there and is not is named.
template <class Call>
int with_options(const attn_options* given, std::initializer_list<std::pair<const char*, const void*>> needed,
                 const Call& call) {
  return guarded([&]() -> Status {
    for (const auto& [name, pointer] : needed) {
      if (!pointer) return missing(name);
    }
    Options options;
    ATTN_RETURN_IF_ERROR(read_options(given, &options));
    return call(options.options);
  });
}

/// A list that was given wrongly must not pass for one that was not given.
inline Status check_list(const char* name, const std::int64_t* numbers, std::int64_t count) {
  if (count < 0)
    return Status::error(std::string(name) + ": " + std::to_string(count) + " of them; give 0 or more");
  if (count > 0 && !numbers) return missing(name);
  return {};
}

inline std::span<const std::int64_t> span_of(const std::int64_t* numbers, std::int64_t count) {
  return numbers && count > 0 ? std::span(numbers, static_cast<std::size_t>(count))
                              : std::span<const std::int64_t>();
}

}  // namespace attn::c

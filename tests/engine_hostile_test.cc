// Sizes that nobody can mean: a refusal or a quick answer, never a crash, a hang or the machine's whole memory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "attn/attn.h"
#include "engine_problem.h"

// A sanitizer's allocator refuses like any other, instead of ending the program.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace attn::tests {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 60;
constexpr int kSeconds = 3;

// Runs `call` in a process of its own: "ok", "refused", or how it went wrong.
std::string outcome_of(const std::function<Status()>& call) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    try {
      _exit(call().ok() ? 10 : 11);
    } catch (...) {
      _exit(12);
    }
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "lost";
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? "hangs" : "crashes";
  switch (WEXITSTATUS(status)) {
    case 10: return "ok";
    case 11: return "refused";
    case 12: return "throws";
    default: return "crashes";
  }
}

// One number, seen again and again through stride 0.
const float number = 0.5F;
TensorView repeated(std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  return {&number, DType::f32, {1, heads, rows, columns}, {0, 0, 0, 0}};
}

AttentionOptions inline_options() {
  AttentionOptions options;
  options.executor = &inline_executor();
  return options;
}

// A sanitizer's operator new ends the program where another throws what the library catches.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kNewThrows = false;
#else
constexpr bool kNewThrows = true;
#endif

void expect_outcome(const std::string& allowed, const std::function<Status()>& call) {
  for (const Isa isa : available_isas()) {
    const ForcedIsa forced(isa);
    const std::string outcome = outcome_of(call);
    EXPECT_TRUE(allowed.find(outcome) != std::string::npos) << name_of(isa) << ": " << outcome;
  }
}

TEST(Hostile, HeadDimsBeyondMemoryAreRefused) {
  expect_outcome(kNewThrows ? "refused" : "refused crashes", [] {
    float out = 0;
    return forward(repeated(1, 1, kHuge), repeated(1, 1, kHuge), repeated(1, 1, 1), {&out, DType::f32, {1, 1}},
                   inline_options());
  });
}

TEST(Hostile, WeightsOfMoreRowsThanMemoryAreRefused) {
  expect_outcome("refused", [] {
    float table = 0;
    return weights(repeated(1, kHuge, 1), repeated(1, 1, 1), {&table, DType::f32, {1, 1}}, inline_options());
  });
  expect_outcome("refused", [] {
    float table = 0;
    return weights(repeated(kHuge, 1, 1), repeated(1, 1, 1), {&table, DType::f32, {1, 1}}, inline_options());
  });
}

TEST(Hostile, PlansOfHugeProblemsComeAtOnce) {
  for (const auto& [queries, keys] : {std::pair{std::int64_t{1}, kHuge}, {kHuge, std::int64_t{1}}}) {
    expect_outcome("ok refused", [queries = queries, keys = keys] {
      Plan result;
      return plan(repeated(1, queries, 1), repeated(1, keys, 1), repeated(1, keys, 1), inline_options(), &result);
    });
  }
}

// A window leaves four of 2^60 keys: there is little to compute.
TEST(Hostile, AWindowOverEndlessKeysIsQuick) {
  expect_outcome("ok refused", [] {
    float out = 0;
    AttentionOptions options = inline_options();
    options.causal = true;
    options.alignment = Alignment::offset;
    options.position_offset = kHuge / 2;
    options.window_left = 3;
    return forward(repeated(1, 1, 1), repeated(1, kHuge, 1), repeated(1, kHuge, 1), {&out, DType::f32, {1, 1}},
                   options);
  });
}

TEST(Hostile, HugeSizesBesideAZeroAreNothing) {
  expect_outcome("ok refused", [] {
    float out = 0;
    return forward(repeated(1, 0, 1), repeated(1, kHuge, 1), repeated(1, kHuge, 1), {&out, DType::f32, {0, 1}},
                   inline_options());
  });
  expect_outcome("ok refused", [] {
    float out = 0;
    return forward(repeated(0, kHuge, 1), repeated(0, kHuge, 1), repeated(0, kHuge, 1),
                   {&out, DType::f32, {0, kHuge, 1}}, inline_options());
  });
}

TEST(Hostile, OutputsThatRepeatOneElementAreRefused) {
  expect_outcome("refused", [] {
    float out = 0;
    return forward(repeated(1, kHuge, 1), repeated(1, 1, 1), repeated(1, 1, 1),
                   {&out, DType::f32, {1, 1, kHuge, 1}, {0, 0, 0, 0}}, inline_options());
  });
}

}  // namespace
}  // namespace attn::tests

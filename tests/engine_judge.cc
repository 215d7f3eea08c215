#include "engine_judge.h"

#include "reference/bound.h"
#include "reference/row.h"

namespace attn::tests {
namespace {

testing::AssertionResult agree(const char* name, const Tensor& actual, const std::vector<double>& expected,
                               const std::vector<double>& bounds, double times) {
  if (actual.size() != static_cast<std::int64_t>(expected.size())) {
    return testing::AssertionFailure() << name << ": " << actual.size() << " elements, but " << expected.size();
  }
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    if (reference::agrees(actual.get(i), expected[i], times * bounds[i])) continue;
    return testing::AssertionFailure() << name << "[" << i << "] is " << actual.get(i) << ", but should be "
                                       << expected[i] << " within " << times * bounds[i];
  }
  return testing::AssertionSuccess();
}

}  // namespace

reference::Result judge(const Problem& p) {
  return reference::attention(p.q.view(), p.k.view(), p.v.view(), p.options(), /*keep_weights=*/true);
}

testing::AssertionResult within_bound(const Problem& p, const Answer& answer, double times) {
  const reference::Result expected = reference::attention(p.q.view(), p.k.view(), p.v.view(), p.options());
  const reference::Bounds bounds =
      reference::error_bounds(expected, p.q.view(), p.k.view(), p.v.view(), p.options(), p.compute(), p.out_dtype);
  if (const auto result = agree("out", answer.out, expected.out, bounds.out, times); !result) return result;
  return agree("lse", answer.lse, expected.lse, bounds.lse, times);
}

std::vector<bool> visible_keys(const Problem& p) {
  const reference::Inputs inputs(p.q.view(), p.k.view(), p.v.view(), p.options());
  std::vector<bool> visible;
  for (const reference::Sequence& sequence : inputs.sequences) {
    for (std::int64_t h = 0; h < p.sizes.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.sizes.queries; ++i) {
        for (std::int64_t j = 0; j < p.sizes.keys; ++j) {
          visible.push_back(i < sequence.queries && j < sequence.keys &&
                            reference::is_visible(inputs, sequence, h, i, j));
        }
      }
    }
  }
  return visible;
}

}  // namespace attn::tests

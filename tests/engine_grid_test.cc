// The same bits, always: every case of a grid of shapes, dtypes and options against the scalar specification, however
// the call is made. One line a case:
//
//   build/release/engine_grid_test          # prints how many comparisons were made; none may differ
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "engine_parts.h"
#include "engine_problem.h"

namespace attn::tests {
namespace {

struct Shape {
  const char* name;
  Sizes sizes;
};

const Shape kShapes[] = {
    {"prompt", {2, 4, 2, 70, 70, 24, 40}},
    {"grouped prompt", {1, 6, 2, 110, 110, 64, 64}},
    {"queries after a past", {1, 4, 1, 33, 300, 40, 16}},
    {"one query", {3, 4, 2, 1, 530, 72, 72}},
    {"several segments", {1, 2, 1, 9, 4300, 16, 16}},
    {"odd sizes", {2, 3, 1, 19, 37, 7, 33}},
};

struct Options {
  const char* name;
  std::function<void(Problem*)> set;
};

void set_causal(Problem* p) {
  p->plain.causal = true;
  p->plain.alignment = Alignment::bottom_right;
}

const Options kOptions[] = {
    {"full", [](Problem*) {}},
    {"causal", set_causal},
    {"window and sink tokens",
     [](Problem* p) {
       set_causal(p);
       p->plain.window_left = 40;
       p->plain.sink_tokens = 3;
     }},
    {"softcap, ALiBi and sinks",
     [](Problem* p) {
       set_causal(p);
       p->plain.softcap = 5;
       p->alibi = normal_tensor(DType::f32, {p->sizes.query_heads}, 7, 0.1);
       p->sinks = normal_tensor(DType::f32, {p->sizes.query_heads}, 8);
     }},
    {"bias",
     [](Problem* p) {
       p->bias = normal_tensor(DType::f32, {1, 1, p->sizes.queries, p->sizes.keys}, 9);
     }},
};

// Counts comparisons, and says which one failed.
class Comparisons {
 public:
  void expect(const testing::AssertionResult& same, const std::string& what) {
    ++count_;
    EXPECT_TRUE(same) << what;
  }
  int count() const { return count_; }

 private:
  int count_ = 0;
};

void compare_targets(const Problem& problem, const Answer& expected, const std::string& name, Comparisons* all) {
  for (const Isa isa : isas_with_equal_bits()) {
    if (isa == Isa::scalar) continue;  // the specification itself
    const ForcedIsa forced(isa);
    all->expect(same_bits(attend(problem), expected), name + ", on " + name_of(isa));
  }
}

void compare_threads(Problem problem, const Answer& expected, const std::string& name, Comparisons* all) {
  for (int threads = 1; threads <= 8; ++threads) {
    const auto pool = make_thread_pool(threads, 0);
    problem.plain.executor = pool.get();
    all->expect(same_bits(attend(problem), expected), name + ", " + std::to_string(threads) + " threads");
  }
}

void compare_layouts(const Problem& problem, const Answer& expected, const std::string& name, Comparisons* all) {
  for (const Layout layout : kLayouts) {
    Problem other = problem;
    for (Tensor* tensor : {&other.q, &other.k, &other.v}) *tensor = tensor->in(layout);
    other.out_layout = layout;
    all->expect(same_bits(attend(other), expected), name + ", layout " + std::to_string(static_cast<int>(layout)));
  }
}

// Every sequence and head alone: what else is in the batch, and where, does not show.
void compare_batches(const Problem& problem, const Answer& expected, const std::string& name, Comparisons* all) {
  for (std::int64_t b = 0; b < problem.sizes.batch; ++b) {
    for (std::int64_t h = 0; h < problem.sizes.kv_heads; ++h) {
      const RowRange rows{b, h, 0, problem.sizes.queries};
      all->expect(same_bits(attend(rows_of(problem, rows)), rows_of(problem, expected, rows)),
                  name + ", sequence " + std::to_string(b) + ", head " + std::to_string(h) + " alone");
    }
  }
}

// Chunks of many sizes, one by one included (engine_chunks_test has every size). Causal rows of a chunk see the keys up to its own end, as a cache holds
// them.
void compare_chunks(const Problem& problem, const Answer& expected, const std::string& name, Comparisons* all) {
  const std::int64_t n = problem.sizes.queries, past = problem.sizes.keys - n;
  for (const std::int64_t chunk : {1, 2, 5, 16, 33, 64, 100}) {
    if (chunk >= n && n > 1) break;
    for (std::int64_t first = 0; first < n; first += chunk) {
      const RowRange rows{0, 0, first, std::min(chunk, n - first)};
      const bool grows = problem.plain.causal;
      Problem part = rows_of(grows ? keys_of(problem, 0, past + first + rows.count) : problem, rows);
      if (grows) {
        part.sinks = rows_of(problem, rows).sinks;  // which keys_of() leaves to the merge
        part.plain.alignment = Alignment::bottom_right;
        part.position_offsets.clear();
      }
      all->expect(same_bits(attend(part), rows_of(problem, expected, rows)),
                  name + ", chunks of " + std::to_string(chunk) + ", row " + std::to_string(first));
    }
  }
}

TEST(Grid, EveryWayOfCallingGivesTheSpecificationsBits) {
  Comparisons all;
  for (const Shape& shape : kShapes) {
    for (const auto& [q, kv] : {std::pair{DType::f32, DType::f32},
                                {DType::f32, DType::bf16},
                                {DType::f16, DType::f16},
                                {DType::f64, DType::f64}}) {
      // Under sanitizers, which take ten times as long, the grid has gaps.
      if (effort(100) < 100 && kv != DType::bf16) continue;
      for (const Options& options : kOptions) {
        Problem problem = normal_problem(shape.sizes, 1, q, kv);
        options.set(&problem);
        if (q == DType::f64) {
          for (std::optional<Tensor>* tensor : {&problem.alibi, &problem.sinks, &problem.bias}) {
            if (*tensor) *tensor = normal_tensor(DType::f64, (*tensor)->shape(), 7, 0.1);
          }
        }
        const std::string name =
            std::string(shape.name) + ", " + name_of(q) + " over " + name_of(kv) + ", " + options.name;
        Answer expected;
        {
          const ForcedIsa forced(Isa::scalar);
          expected = attend(problem);
        }
        compare_targets(problem, expected, name, &all);
        compare_threads(problem, expected, name, &all);
        compare_layouts(problem, expected, name, &all);
        compare_batches(problem, expected, name, &all);
        compare_chunks(problem, expected, name, &all);
        if (HasFailure()) return;
      }
    }
  }
  std::cout << all.count() << " comparisons of all bits, none differs\n";
}

}  // namespace
}  // namespace attn::tests

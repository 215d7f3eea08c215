// The worked example: three tokens with four features each, one head of two dimensions.
#include "explain/example.h"

namespace attn::explain {

reference::Problem worked_example() {
  reference::Problem problem;
  problem.tokens = {"order", "4471", "shipped"};
  problem.x = {{1, 0, 1, 0}, {0, 1, 0, 1}, {1, 1, 0, 0}};
  problem.wq = {{1, 0}, {0, 1}, {1, 1}, {0, 0}};
  problem.wk = {{1, 0}, {0, 0}, {1, 1}, {0, 1}};
  problem.wv = {{1, 0}, {0, 1}, {2, 0}, {0, 3}};
  problem.options.causal = true;
  return problem;
}

}  // namespace attn::explain

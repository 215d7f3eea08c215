// Is an answer right? Attention whose causal mask was forgotten, and what the judge says of it.
//   find_package(attn REQUIRED)
//   target_link_libraries(check PRIVATE attn::diagnose)
#include <cstdio>
#include <vector>

#include "attn/attn.h"
#include "attn/diagnose.h"

int main() {
  std::vector<float> q(4 * 8 * 16), k(q.size()), v(q.size()), theirs(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    q[i] = static_cast<float>((i * 7) % 11) - 5;
    k[i] = static_cast<float>((i * 5) % 13) / 6 - 1;
    v[i] = static_cast<float>((i * 3) % 17) - 8;
  }
  const auto view = [](std::vector<float>& numbers) {
    return attn::OutputView(numbers.data(), attn::DType::f32, {4, 8, 16});  // heads, tokens, head dimension
  };
  attn::AttentionOptions asked;
  asked.causal = true;
  attn::Diagnosis diagnosis;
  attn::Status status = attn::forward(view(q), view(k), view(v), view(theirs));  // the mistake: no options
  if (status.ok()) status = attn::check(view(q), view(k), view(v), view(theirs), asked, {}, &diagnosis);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.message().c_str()), 1;
  for (const attn::Explanation& explanation : diagnosis.explanations) {
    for (const std::string& id : explanation.ids) std::puts(attn::find_mistake(id)->name.data());
  }
}

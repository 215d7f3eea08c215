// The judge as a program of somebody else's calls it, on an answer that is twice what it should be.
#include <cstdio>

#include "attn/diagnose.h"

int main() {
  const float q[] = {1, 2}, out[] = {2, 4};  // one key: its value, but twice
  const attn::TensorView row(q, attn::DType::f32, {1, 2});
  attn::Diagnosis diagnosis;
  const attn::Status status = attn::check(row, row, row, {out, attn::DType::f32, {1, 2}}, {}, {}, &diagnosis);
  std::puts(status.ok() && diagnosis.verdict != attn::Verdict::right ? "wrong" : "right");
  return 0;
}

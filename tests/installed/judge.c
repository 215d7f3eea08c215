/* The judge and the explanations from C: they need every library behind the static one. */
#include <stdio.h>

#include "attn/attn_c.h"

int main(void) {
  float q[2] = {1, 2}, out[2] = {2, 4}; /* one key: its value, but twice */
  const int64_t shape[2] = {1, 2};
  attn_tensor row = attn_contiguous(q, ATTN_F32, 2, shape), theirs = attn_contiguous(out, ATTN_F32, 2, shape);
  attn_diagnosis* diagnosis = NULL;
  attn_text* text = NULL;

  if (attn_check(&row, &row, &row, &theirs, NULL, NULL, &diagnosis) != ATTN_OK ||
      attn_explain(&row, &row, &row, NULL, NULL, &text) != ATTN_OK) {
    fprintf(stderr, "%s\n", attn_message());
    return 1;
  }
  puts(attn_diagnosis_verdict(diagnosis) != ATTN_RIGHT && attn_text_size(text) > 0 ? "wrong" : "right");
  attn_diagnosis_destroy(diagnosis);
  attn_text_destroy(text);
  return 0;
}

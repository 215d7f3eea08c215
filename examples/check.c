/* Is an answer right? Attention without its scale, and what the judge says of it.
 *   cc check.c $(pkg-config --cflags --libs attn_c) -o check */
#include <stdio.h>

#include "attn/attn_c.h"

int main(void) {
  float q[6] = {2, 1, 0, 1, 1, 1}, k[6] = {2, 1, 0, 1, 1, 0}, v[6] = {3, 0, 0, 4, 1, 1}, theirs[6];
  const int64_t shape[2] = {3, 2}; /* tokens, head dimension */
  attn_tensor tq = attn_contiguous(q, ATTN_F32, 2, shape), tk = attn_contiguous(k, ATTN_F32, 2, shape);
  attn_tensor tv = attn_contiguous(v, ATTN_F32, 2, shape), to = attn_contiguous(theirs, ATTN_F32, 2, shape);
  attn_diagnosis* diagnosis = NULL;
  attn_options options;

  attn_options_init(&options, sizeof options);
  options.scale = 1; /* the mistake: it should be 1/sqrt(2) */
  if (attn_forward(&tq, &tk, &tv, &to, NULL, &options) != ATTN_OK ||
      attn_check(&tq, &tk, &tv, &to, NULL, NULL, &diagnosis) != ATTN_OK) {
    fprintf(stderr, "%s\n", attn_message());
    return 1;
  }
  fputs(attn_diagnosis_text(diagnosis), stdout);
  attn_diagnosis_destroy(diagnosis);
  return 0;
}

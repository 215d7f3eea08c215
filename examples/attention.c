/* Attention from C: a prompt of three tokens through a KV cache, one token after the other.
 *   cc attention.c -lattn_c -o attention */
#include <stdio.h>

#include "attn/attn_c.h"

int main(void) {
  float q[6] = {2, 1, 0, 1, 1, 1}, k[6] = {2, 1, 0, 1, 1, 0}, v[6] = {3, 0, 0, 4, 1, 1}, out[2];
  const int64_t shape[3] = {1, 1, 2}; /* heads, tokens, head dimension */
  int64_t sequence, token;
  attn_cache* cache = NULL;
  attn_cache_options options;

  attn_cache_options_init(&options, sizeof options);
  options.kv_heads = 1;
  options.key_dim = 2;
  if (attn_cache_create(&options, &cache) != ATTN_OK || attn_cache_add_sequence(cache, &sequence) != ATTN_OK) {
    fprintf(stderr, "%s\n", attn_message());
    return 1;
  }
  for (token = 0; token < 3; ++token) {
    attn_tensor tq = attn_contiguous(q + 2 * token, ATTN_F32, 3, shape);
    attn_tensor tk = attn_contiguous(k + 2 * token, ATTN_F32, 3, shape);
    attn_tensor tv = attn_contiguous(v + 2 * token, ATTN_F32, 3, shape);
    attn_tensor to = attn_contiguous(out, ATTN_F32, 3, shape);
    if (attn_cache_append(cache, &sequence, 1, &tk, &tv, NULL) != ATTN_OK ||
        attn_cache_attend(cache, &sequence, 1, &tq, &to, NULL, NULL) != ATTN_OK) {
      fprintf(stderr, "%s\n", attn_message());
      return 1;
    }
    printf("%.2f %.2f\n", out[0], out[1]);
  }
  attn_cache_destroy(cache);
  return 0;
}

/* The C interface from C99: what it gives, and what it refuses. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attn/attn_c.h"

static int failures = 0;

static void expect(int truth, const char* what) {
  if (truth) return;
  ++failures;
  printf("FAILED: %s (%s)\n", what, attn_message());
}

static attn_tensor rows(float* numbers, int64_t heads, int64_t count, int64_t dim) {
  int64_t shape[3];
  shape[0] = heads;
  shape[1] = count;
  shape[2] = dim;
  return attn_contiguous(numbers, ATTN_F32, 3, shape);
}

/* The worked example: three tokens, causal. */
static float q[6] = {2, 1, 0, 1, 1, 1}, k[6] = {2, 1, 0, 1, 1, 0}, v[6] = {3, 0, 0, 4, 1, 1};

static int64_t tasks_run = 0;
static void count_tasks(void* context, int64_t count, void (*task)(void*, int64_t, int32_t), void* task_context) {
  int64_t i;
  (void)context;
  for (i = 0; i < count; ++i) task(task_context, i, 0);
  tasks_run += count;
}

static void attends(void) {
  float out[6], lse[3], weights[9];
  int64_t lse_shape[2] = {1, 3}, last[1] = {2};
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2);
  attn_tensor tl = attn_contiguous(lse, ATTN_F32, 2, lse_shape), tw = rows(weights, 1, 1, 3);
  attn_options options;
  attn_plan_info plan;
  attn_executor host = {sizeof(attn_executor), 1, 0, NULL, count_tasks};

  attn_options_init(&options);
  options.causal = 1;
  expect(attn_forward(&tq, &tk, &tv, &to, &tl, &options) == ATTN_OK, "forward");
  expect(out[0] == 3 && out[1] == 0, "the first row sees one key, and is its value");
  expect(fabs(lse[0] - 5 / sqrt(2.0)) < 1e-6, "lse");
  expect(attn_weights(&tq, &tk, &tw, &options, last, 1, NULL, 0) == ATTN_OK, "weights");
  expect(fabs(weights[0] + weights[1] + weights[2] - 1) < 1e-6, "weights of a row add up to 1");

  options.executor = &host;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &options) == ATTN_OK, "forward on a host's executor");
  options.executor = attn_inline_executor();
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &options) == ATTN_OK, "forward on the calling thread");
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, NULL) == ATTN_OK, "forward without options");

  attn_plan_init(&plan);
  expect(attn_plan(&tq, &tk, &tv, NULL, &plan) == ATTN_OK && plan.flops > 0 && strlen(plan.isa) > 0, "plan");
  expect(strstr(attn_isas(), attn_isa()) != NULL, "the target that runs is one of those");
  expect(attn_force_isa("abacus") == ATTN_INVALID && strstr(attn_message(), "abacus") != NULL, "no such target");
}

static void merges(void) {
  float max[3], sum[3], part[6], out[6], whole[6];
  int64_t shape[2] = {1, 3};
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2),
              tw = rows(whole, 1, 3, 2);
  attn_state state;
  state.max = attn_contiguous(max, ATTN_F32, 2, shape);
  state.sum = attn_contiguous(sum, ATTN_F32, 2, shape);
  state.out = rows(part, 1, 3, 2);
  expect(attn_forward_state(&tq, &tk, &tv, &state, NULL) == ATTN_OK, "forward_state");
  expect(attn_finish_state(&state, &to, NULL, NULL) == ATTN_OK, "finish_state");
  expect(attn_forward(&tq, &tk, &tv, &tw, NULL, NULL) == ATTN_OK && memcmp(out, whole, sizeof out) == 0,
         "a state that is finished has the bits of the whole");
}

static void caches(void) {
  float cached[2], out[6];
  int64_t sequence = -1, copy = -1, token;
  attn_cache* cache = NULL;
  attn_cache_options options;
  attn_cache_usage_info usage;
  attn_options causal;
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2);

  attn_options_init(&causal);
  causal.causal = 1;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &causal) == ATTN_OK, "forward");
  attn_cache_options_init(&options);
  options.kv_heads = 1;
  options.key_dim = 2;
  expect(attn_cache_create(&options, &cache) == ATTN_OK, "create");
  expect(attn_cache_add_sequence(cache, &sequence) == ATTN_OK, "add_sequence");
  for (token = 0; token < 3; ++token) {
    attn_tensor one_k = rows(k + 2 * token, 1, 1, 2), one_v = rows(v + 2 * token, 1, 1, 2);
    attn_tensor one_q = rows(q + 2 * token, 1, 1, 2), one = rows(cached, 1, 1, 2);
    expect(attn_cache_append(cache, &sequence, 1, &one_k, &one_v, NULL) == ATTN_OK, "append");
    expect(attn_cache_attend(cache, &sequence, 1, &one_q, &one, NULL, &causal) == ATTN_OK, "attend");
    expect(memcmp(cached, out + 2 * token, sizeof cached) == 0, "cached equals recomputed");
  }
  expect(attn_cache_fork(cache, sequence, &copy) == ATTN_OK && attn_cache_length(cache, copy) == 3, "fork");
  expect(attn_cache_truncate(cache, copy, 1) == ATTN_OK && attn_cache_length(cache, copy) == 1, "truncate");
  usage.size = sizeof usage;
  expect(attn_cache_usage(cache, &usage) == ATTN_OK && usage.sequences == 2 && usage.tokens == 4, "usage");
  expect(attn_cache_release(cache, copy) == ATTN_OK && attn_cache_length(cache, copy) == -1, "release");
  expect(attn_cache_truncate(cache, 77, 0) == ATTN_INVALID, "no such sequence");
  attn_cache_destroy(cache);
  attn_cache_destroy(NULL);
}

static void rotates(void) {
  float x[4] = {1, 0, 1, 0}, turned[4];
  int64_t at[2] = {0, 1};
  attn_tensor tx = rows(x, 1, 2, 2), to = rows(turned, 1, 2, 2);
  expect(attn_rotate(&tx, &to, at, 2, NULL) == ATTN_OK, "rotate");
  expect(turned[0] == 1 && fabs(turned[2] - cos(1.0)) < 1e-6 && fabs(turned[3] - sin(1.0)) < 1e-6, "by one radian");
}

static void refuses(void) {
  float out[6];
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 2, 3), tv = rows(v, 1, 2, 3), to = rows(out, 1, 3, 2);
  attn_options options;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, NULL) == ATTN_INVALID && strstr(attn_message(), "head dim") != NULL,
         "shapes that do not fit");
  expect(attn_forward(NULL, &tk, &tv, &to, NULL, NULL) == ATTN_INVALID && strncmp(attn_message(), "q: NULL", 7) == 0,
         "no q");
  memset(&options, 0, sizeof options);
  expect(attn_forward(&tq, &tq, &tq, &to, NULL, &options) == ATTN_INVALID && strstr(attn_message(), "_init") != NULL,
         "options that were not initialised");
  tq.dtype = 99;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, NULL) == ATTN_INVALID, "an unknown dtype");
  expect(attn_cache_create(NULL, NULL) == ATTN_INVALID, "no options");
}

/* A program that was compiled against an older, shorter struct. */
static void takes_shorter_structs(void) {
  float out[6], all[6];
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2),
              ta = rows(all, 1, 3, 2);
  attn_options options;
  attn_options_init(&options);
  options.scale = 0.25;
  options.causal = 1;
  options.size = offsetof(attn_options, softcap);
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &options) == ATTN_OK, "shorter options");
  attn_options_init(&options);
  options.scale = 0.25;
  expect(attn_forward(&tq, &tk, &tv, &ta, NULL, &options) == ATTN_OK && memcmp(out, all, sizeof out) == 0,
         "what lies behind the size is not read");
}

int main(void) {
  attends();
  merges();
  caches();
  rotates();
  refuses();
  takes_shorter_structs();
  if (failures == 0) printf("the C interface of attn %s works\n", attn_version());
  return failures != 0;
}

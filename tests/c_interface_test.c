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

  attn_options_init(&options, sizeof options);
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

  attn_plan_init(&plan, sizeof plan);
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

  attn_options_init(&causal, sizeof causal);
  causal.causal = 1;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &causal) == ATTN_OK, "forward");
  attn_cache_options_init(&options, sizeof options);
  options.kv_heads = 1;
  options.key_dim = 2;
  expect(attn_cache_create(&options, &cache) == ATTN_OK, "create");
  options.value_dim = 0;
  expect(attn_cache_get_options(cache, &options) == ATTN_OK && options.value_dim == 2, "get_options");
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
  expect(
      attn_forward(NULL, &tk, &tv, &to, NULL, NULL) == ATTN_INVALID && strncmp(attn_message(), "q: NULL", 7) == 0,
      "no q");
  memset(&options, 0, sizeof options);
  expect(
      attn_forward(&tq, &tq, &tq, &to, NULL, &options) == ATTN_INVALID && strstr(attn_message(), "_init") != NULL,
      "options that were not initialised");
  tq.dtype = 99;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, NULL) == ATTN_INVALID, "an unknown dtype");
  expect(attn_cache_create(NULL, NULL) == ATTN_INVALID, "no options");
  {
    int64_t lengths[1] = {2}, shape[2] = {3, 2};
    attn_tensor fine = rows(q, 1, 3, 2), lse = attn_contiguous(out, ATTN_F32, 2, shape);
    attn_options_init(&options, sizeof options);
    options.key_lengths = lengths;
    expect(attn_forward(&fine, &fine, &fine, &to, NULL, &options) == ATTN_INVALID &&
               strstr(attn_message(), "sequences") != NULL,
           "lengths for no sequence");
    expect(attn_merge(&fine, &lse, 0, &to, NULL) == ATTN_INVALID, "nothing to merge");
    expect(attn_weights(&fine, &fine, &to, NULL, NULL, 3, NULL, 0) == ATTN_INVALID, "rows that are not there");
    expect(attn_rotate(&fine, &to, NULL, 5, NULL) == ATTN_INVALID, "positions that are not there");
    expect(attn_alibi_slopes(4, NULL) == ATTN_INVALID, "nowhere to put slopes");
    expect(attn_contiguous(out, ATTN_F32, 2, NULL).rank == -1, "no shape");
  }
}

/* A program that was compiled against an older, shorter struct. */
static void takes_shorter_structs(void) {
  float out[6], all[6];
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2),
              ta = rows(all, 1, 3, 2);
  attn_options options;
  attn_options_init(&options, sizeof options);
  options.scale = 0.25;
  options.causal = 1;
  options.size = offsetof(attn_options, softcap);
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &options) == ATTN_OK, "shorter options");
  attn_options_init(&options, sizeof options);
  options.scale = 0.25;
  expect(attn_forward(&tq, &tk, &tv, &ta, NULL, &options) == ATTN_OK && memcmp(out, all, sizeof out) == 0,
         "what lies behind the size is not read");
}

/* And of a program that is newer than the library. */
static void takes_longer_structs(void) {
  float out[6];
  struct {
    attn_options known;
    int64_t unknown;
  } longer;
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2);
  memset(&longer, 7, sizeof longer);
  attn_options_init(&longer.known, sizeof longer);
  expect(longer.unknown == 0, "what the library does not know is zero");
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &longer.known) == ATTN_OK, "longer options");
  longer.unknown = 1;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &longer.known) == ATTN_INVALID &&
             strstr(attn_message(), "does not know") != NULL,
         "an option that the library does not know");
  memset(&longer, 7, sizeof longer);
  attn_options_init(&longer.known, offsetof(attn_options, softcap));
  expect(longer.unknown == 0x0707070707070707, "init writes no further than it is told");
}

static void has_pools(void) {
  float out[6], alone[6];
  attn_pool* pool = NULL;
  attn_options options;
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2),
              ta = rows(alone, 1, 3, 2);
  attn_options_init(&options, sizeof options);
  expect(attn_pool_create(2, &pool) == ATTN_OK && attn_pool_executor(pool)->threads == 2, "a pool of two threads");
  options.executor = attn_pool_executor(pool);
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &options) == ATTN_OK, "forward on a pool");
  options.executor = attn_inline_executor();
  expect(attn_forward(&tq, &tk, &tv, &ta, NULL, &options) == ATTN_OK && memcmp(out, alone, sizeof out) == 0,
         "the same bits alone");
  attn_pool_destroy(pool);
  attn_pool_destroy(NULL);
  expect(attn_pool_create(1, NULL) == ATTN_INVALID, "nowhere to put a pool");
}

static void explains(void) {
  const char* tokens[3] = {"order", "4471", "shipped"};
  float x[6] = {1, 0, 0, 1, 1, 1}, identity[4] = {1, 0, 0, 1};
  int64_t shape[2] = {3, 2}, square[2] = {2, 2};
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2);
  attn_tensor tx = attn_contiguous(x, ATTN_F32, 2, shape), ti = attn_contiguous(identity, ATTN_F32, 2, square);
  attn_text* text = NULL;
  attn_options causal;
  attn_explain_options options;
  attn_options_init(&causal, sizeof causal);
  causal.causal = 1;
  attn_explain_options_init(&options, sizeof options);
  options.tokens = tokens;
  options.tile = 1;
  expect(attn_explain(&tq, &tk, &tv, &causal, &options, &text) == ATTN_OK, "explain");
  expect(strstr(attn_text_data(text), "shipped") != NULL && strlen(attn_text_data(text)) == attn_text_size(text),
         "the lesson names the tokens");
  attn_text_destroy(text);
  options.format = "json";
  options.mistake = "scale-missing";
  expect(attn_explain(&tq, &tk, &tv, &causal, &options, &text) == ATTN_OK &&
             strstr(attn_text_data(text), "\"mistaken_out\"") != NULL,
         "a mistake in JSON");
  attn_text_destroy(text);
  attn_text_destroy(NULL);
  options.mistake = NULL;
  options.x = &tx;
  options.wq = options.wk = options.wv = &ti;
  expect(attn_explain(NULL, NULL, NULL, &causal, &options, &text) == ATTN_OK &&
             strstr(attn_text_data(text), "\"wq\"") != NULL,
         "from embeddings");
  attn_text_destroy(text);
  options.mistake = "typo";
  expect(
      attn_explain(&tq, &tk, &tv, NULL, &options, &text) == ATTN_INVALID && strstr(attn_message(), "typo") != NULL,
      "no such mistake");
  options.mistake = NULL;
  options.format = "pdf";
  expect(attn_explain(&tq, &tk, &tv, NULL, &options, &text) == ATTN_INVALID, "no such format");
  expect(
      attn_explain(&tq, NULL, &tv, NULL, NULL, &text) == ATTN_INVALID && strncmp(attn_message(), "k: NULL", 7) == 0,
      "q without k");
  expect(attn_explain(NULL, NULL, NULL, NULL, NULL, &text) == ATTN_INVALID, "neither q nor x");
}

static void judges(void) {
  float out[6];
  attn_tensor tq = rows(q, 1, 3, 2), tk = rows(k, 1, 3, 2), tv = rows(v, 1, 3, 2), to = rows(out, 1, 3, 2);
  attn_diagnosis* diagnosis = NULL;
  attn_options options;
  attn_check_options check;
  attn_options_init(&options, sizeof options);
  options.scale = 1;
  expect(attn_forward(&tq, &tk, &tv, &to, NULL, &options) == ATTN_OK, "an answer without the scale");
  expect(attn_check(&tq, &tk, &tv, &to, NULL, NULL, &diagnosis) == ATTN_OK &&
             attn_diagnosis_verdict(diagnosis) == ATTN_WRONG,
         "is wrong");
  expect(strstr(attn_diagnosis_text(diagnosis), "scale-missing") != NULL &&
             strstr(attn_diagnosis_json(diagnosis), "scale-missing") != NULL,
         "and it is said why");
  attn_diagnosis_destroy(diagnosis);
  expect(attn_check(&tq, &tk, &tv, &to, &options, NULL, &diagnosis) == ATTN_OK &&
             attn_diagnosis_verdict(diagnosis) == ATTN_RIGHT,
         "but right where it was asked for");
  attn_diagnosis_destroy(diagnosis);
  attn_diagnosis_destroy(NULL);
  attn_check_options_init(&check, sizeof check);
  check.tolerance = -1;
  expect(attn_check(&tq, &tk, &tv, &to, NULL, &check, &diagnosis) == ATTN_INVALID, "a tolerance below 0");
  expect(strstr(attn_mistakes(), "scale-missing") != NULL, "the mistakes are listed");
}

int main(void) {
  attends();
  merges();
  caches();
  rotates();
  refuses();
  takes_shorter_structs();
  takes_longer_structs();
  has_pools();
  explains();
  judges();
  if (failures == 0) printf("the C interface of attn %s works\n", attn_version());
  return failures != 0;
}

/* The library for C, and for every language that calls C: libattn_c, a shared library that exports only these functions.
 *
 * Each does what its C++ namesake does (attention.h, options.h, kv_cache.h, rope.h are the reference for shapes,
 * dtypes, complexity and errors); here is what differs. A function returns ATTN_OK or an error code, and then
 * attn_message() is the sentence that says what is wrong and what would be right. Structs begin with their own size, which
 * attn_*_init(&it, sizeof it) sets, with everything else "not given". So they may grow: a library that is newer than the program
 * takes what the program does not know as not given, and one that is older refuses what it does not know. No C++ type and no
 * exception crosses this boundary.
 *
 * Threads: as in C++. attn_message() is a thread's own.
 */
#ifndef ATTN_ATTN_C_H_
#define ATTN_ATTN_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

/* What a function returns. */
enum {
  ATTN_OK = 0,
  ATTN_INVALID = 1,       /* an argument that does not fit; attn_message() names it */
  ATTN_OUT_OF_MEMORY = 2, /* memory that can't be had */
};

/* The last error's sentence on this thread; "" where there was none. Valid until this thread's next call. */
ATTN_API const char* attn_message(void);

/* "0.1.0" */
ATTN_API const char* attn_version(void);

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

enum { ATTN_F32 = 0, ATTN_F64 = 1, ATTN_F16 = 2, ATTN_BF16 = 3, ATTN_BOOL = 4 };

/* A view of memory that belongs to the caller. Strides count elements, not bytes. */
typedef struct attn_tensor {
  void* data;
  int32_t dtype;
  int32_t rank; /* up to 4; fewer dimensions are aligned right */
  int64_t shape[4];
  int64_t strides[4];
} attn_tensor;

/* Row-major, without gaps. `rank` beyond 4 makes a view that calls refuse. */
ATTN_API attn_tensor attn_contiguous(void* data, int32_t dtype, int32_t rank, const int64_t* shape);

/* ---- Who runs the tasks ----------------------------------------------------------------------------------------- */

/* A host's own pool. run() calls task(task_context, index, worker) once for each index below `count`, and returns when all
 * have returned; `worker` is below `threads`, and no two calls that overlap in time share it. */
typedef struct attn_executor {
  size_t size; /* sizeof(attn_executor) */
  int32_t threads;
  double least_work; /* multiply-adds below which the calling thread works alone */
  void* context;
  void (*run)(void* context, int64_t count, void (*task)(void* task_context, int64_t index, int32_t worker),
              void* task_context);
} attn_executor;

/* The calling thread alone; no other is ever woken. */
ATTN_API const attn_executor* attn_inline_executor(void);

/* A pool of the library's own threads, the caller among them; 0: one a processor. Several calls may share one. */
typedef struct attn_pool attn_pool;
ATTN_API int attn_pool_create(int32_t threads, attn_pool** pool);
/* NULL is allowed. No call may use it any more. */
ATTN_API void attn_pool_destroy(attn_pool* pool);
/* What attn_options.executor takes; it lives as long as the pool. */
ATTN_API const attn_executor* attn_pool_executor(const attn_pool* pool);

/* ---- Options ---------------------------------------------------------------------------------------------------- */

enum { ATTN_EQUAL_LENGTHS = 0, ATTN_TOP_LEFT = 1, ATTN_BOTTOM_RIGHT = 2, ATTN_OFFSET = 3 };

/* As AttentionOptions. attn_options_init() first. */
typedef struct attn_options {
  size_t size;
  double scale;   /* NaN: 1/sqrt(Dk) */
  double softcap; /* 0: none */
  int32_t causal; /* 0 or 1 */
  int32_t alignment;
  int64_t position_offset;
  const int64_t* position_offsets; /* [B], or NULL */
  int64_t window_left;             /* -1: unbounded */
  int64_t window_right;            /* -1: unbounded */
  int64_t sink_tokens;
  const attn_tensor* mask; /* NULL: none; as all tensors below */
  const attn_tensor* bias;
  const attn_tensor* alibi;
  const attn_tensor* sinks;
  const int64_t* key_lengths; /* [B], or NULL */
  const int64_t* query_lengths;
  const int64_t* query_starts; /* [sequences + 1], or NULL */
  const int64_t* key_starts;
  int64_t sequences; /* how many numbers position_offsets and lengths have, and starts less one */
  int64_t key_offset;
  int32_t bf16_products; /* 0 or 1 */
  int32_t unused;
  const attn_executor* executor; /* NULL: the library's own threads, one a processor */
} attn_options;

ATTN_API void attn_options_init(attn_options* options, size_t size);

/* ---- Attention -------------------------------------------------------------------------------------------------- */

/* out = softmax(q·k^T·scale + masks)·v; lse may be NULL, and so may options. */
ATTN_API int attn_forward(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_tensor* out,
                          const attn_tensor* lse, const attn_options* options);

/* What attn_forward() would do. */
typedef struct attn_plan_info {
  size_t size;
  const char* path; /* static texts */
  const char* isa;
  int32_t compute; /* dtype */
  int32_t threads;
  int64_t tasks, query_tile_rows, key_block;
  int64_t tiles_full, tiles_partial, tiles_skipped;
  int64_t scratch_bytes;
  double flops, bytes, table_bytes;
} attn_plan_info;

ATTN_API void attn_plan_init(attn_plan_info* plan, size_t size);
ATTN_API int attn_plan(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v,
                       const attn_options* options, attn_plan_info* plan);

/* The weights of chosen rows and heads; NULL and 0: all. */
ATTN_API int attn_weights(const attn_tensor* q, const attn_tensor* k, const attn_tensor* weights,
                          const attn_options* options, const int64_t* rows, int64_t row_count, const int64_t* heads,
                          int64_t head_count);

/* A partial result: max and sum [B, Hq, N], out [B, Hq, N, Dv]. */
typedef struct attn_state {
  attn_tensor max, sum, out;
} attn_state;

ATTN_API int attn_forward_state(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v,
                                const attn_state* state, const attn_options* options);
ATTN_API int attn_merge_states(const attn_state* into, const attn_state* next);
ATTN_API int attn_finish_state(const attn_state* state, const attn_tensor* out, const attn_tensor* lse,
                               const attn_tensor* sinks);
/* Finished results over disjoint sets of keys. */
ATTN_API int attn_merge(const attn_tensor* outs, const attn_tensor* lses, int64_t count, const attn_tensor* out,
                        const attn_tensor* lse);

/* The standard ALiBi slopes, `heads` of them. */
ATTN_API int attn_alibi_slopes(int32_t heads, float* slopes);

/* ---- Targets ---------------------------------------------------------------------------------------------------- */

/* "avx512": what runs now. */
ATTN_API const char* attn_isa(void);
/* What this machine can run, slowest first, separated by blanks: "scalar sse4 avx2 avx512". */
ATTN_API const char* attn_isas(void);
/* Runs that one from now on. */
ATTN_API int attn_force_isa(const char* name);

/* ---- KV cache --------------------------------------------------------------------------------------------------- */

typedef struct attn_cache attn_cache;

enum { ATTN_CACHE_F32 = 0, ATTN_CACHE_BF16 = 1, ATTN_CACHE_F16 = 2, ATTN_CACHE_Q8 = 3 };

typedef struct attn_cache_options {
  size_t size;
  int64_t kv_heads, key_dim, value_dim; /* value_dim 0: as key_dim */
  int32_t type;
  int32_t unused;
  int64_t page_tokens; /* 256 */
  int64_t most_bytes;  /* -1: as many as the machine gives */
} attn_cache_options;

typedef struct attn_cache_usage_info {
  size_t size;
  int64_t page_bytes, pages, pages_in_use, sequences, tokens;
} attn_cache_usage_info;

ATTN_API void attn_cache_options_init(attn_cache_options* options, size_t size);
ATTN_API int attn_cache_create(const attn_cache_options* options, attn_cache** cache);
/* NULL is allowed. */
ATTN_API void attn_cache_destroy(attn_cache* cache);
/* What it was made with, also of one that was loaded; value_dim is never 0. options->size is set by the caller. */
ATTN_API int attn_cache_get_options(const attn_cache* cache, attn_cache_options* options);
ATTN_API int attn_cache_add_sequence(attn_cache* cache, int64_t* sequence);
/* To `count` sequences at once; starts may be NULL (not packed), otherwise [count + 1]. */
ATTN_API int attn_cache_append(attn_cache* cache, const int64_t* sequences, int64_t count, const attn_tensor* k,
                               const attn_tensor* v, const int64_t* starts);
ATTN_API int attn_cache_attend(const attn_cache* cache, const int64_t* sequences, int64_t count,
                               const attn_tensor* q, const attn_tensor* out, const attn_tensor* lse,
                               const attn_options* options);
ATTN_API int attn_cache_fork(attn_cache* cache, int64_t sequence, int64_t* copy);
ATTN_API int attn_cache_truncate(attn_cache* cache, int64_t sequence, int64_t tokens);
ATTN_API int attn_cache_drop_before(attn_cache* cache, int64_t sequence, int64_t position, int64_t sink_tokens);
ATTN_API int attn_cache_release(attn_cache* cache, int64_t sequence);
/* -1: there is no such sequence. */
ATTN_API int64_t attn_cache_length(const attn_cache* cache, int64_t sequence);
ATTN_API int attn_cache_reserve(attn_cache* cache, int64_t tokens);
ATTN_API int64_t attn_cache_bytes(const attn_cache* cache);
/* usage->size is set by the caller. */
ATTN_API int attn_cache_usage(const attn_cache* cache, attn_cache_usage_info* usage);
ATTN_API int attn_cache_save(const attn_cache* cache, const char* path);
/* most_bytes -1: no limit. */
ATTN_API int attn_cache_load(const char* path, int64_t most_bytes, attn_cache** cache);

/* ---- Rotary positions ------------------------------------------------------------------------------------------- */

enum { ATTN_ROPE_HALF_SPLIT = 0, ATTN_ROPE_ADJACENT_PAIRS = 1 };
enum { ATTN_ROPE_NO_SCALING = 0, ATTN_ROPE_LINEAR = 1, ATTN_ROPE_NTK = 2, ATTN_ROPE_YARN = 3 };

typedef struct attn_rope_options {
  size_t size;
  int32_t layout, scaling;
  int64_t rotary_dim; /* 0: all */
  double base, factor;
  int64_t original_length;
  double beta_fast, beta_slow;
  double attention_factor; /* NaN: by the formula */
} attn_rope_options;

ATTN_API void attn_rope_options_init(attn_rope_options* options, size_t size);
/* positions: NULL, or N of them, or B·N. `out` may be `x`. */
ATTN_API int attn_rotate(const attn_tensor* x, const attn_tensor* out, const int64_t* positions,
                         int64_t position_count, const attn_rope_options* options);

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

/* A text that the library made, in UTF-8. */
typedef struct attn_text attn_text;
/* Ends with a zero byte; valid until the text is destroyed. */
ATTN_API const char* attn_text_data(const attn_text* text);
/* Bytes, without the zero at the end. */
ATTN_API size_t attn_text_size(const attn_text* text);
/* NULL is allowed. */
ATTN_API void attn_text_destroy(attn_text* text);

/* ---- Attention worked by hand ----------------------------------------------------------------------------------- */

typedef struct attn_explain_options {
  size_t size;
  const char* format;        /* "text", "markdown", "latex" or "json"; NULL: text */
  const char* const* tokens; /* N names; NULL: "0", "1", ... */
  const attn_tensor* x;      /* [N, C], with q, k and v NULL: q = x·wq, k = x·wk, v = x·wv */
  const attn_tensor *wq, *wk, *wv;
  int64_t heads; /* with x: the columns of q, k and v are split into so many heads */
  int64_t tile;  /* also tile by tile, with so many keys a tile; 0: not */
  int32_t cache; /* 1: also token by token, through a KV cache */
  int32_t unused;
  const char* mistake; /* a known mistake, made beside the right numbers; NULL: none */
} attn_explain_options;

ATTN_API void attn_explain_options_init(attn_explain_options* options, size_t size);
/* As `attn explain`: every number of every step, in float64, of at most 64 tokens. q, k, v: [N, D] or [H, N, D], as many heads
 * and rows of each. Destroy *text when done. */
ATTN_API int attn_explain(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v,
                          const attn_options* options, const attn_explain_options* explain_options,
                          attn_text** text);

/* ---- Is an answer right? ---------------------------------------------------------------------------------------- */

enum {
  ATTN_RIGHT = 0,
  ATTN_WRONG = 1,       /* and one or more known mistakes give these very numbers */
  ATTN_UNEXPLAINED = 2, /* wrong, and no known mistake explains it */
};

typedef struct attn_check_options {
  size_t size;
  const attn_tensor* weights; /* theirs, [B, Hq, N, M]; NULL: not known */
  const attn_tensor* lse;     /* theirs, [B, Hq, N]; NULL: not known */
  double tolerance;           /* this absolute difference is allowed everywhere; NaN: the bound */
} attn_check_options;

typedef struct attn_diagnosis attn_diagnosis;

ATTN_API void attn_check_options_init(attn_check_options* options, size_t size);
/* As check() in diagnose.h. Destroy *diagnosis when done. */
ATTN_API int attn_check(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_tensor* theirs,
                        const attn_options* options, const attn_check_options* check_options,
                        attn_diagnosis** diagnosis);
ATTN_API int32_t attn_diagnosis_verdict(const attn_diagnosis* diagnosis);
/* What `attn check` prints, and what it prints with --json. Valid until the diagnosis is destroyed. */
ATTN_API const char* attn_diagnosis_text(const attn_diagnosis* diagnosis);
ATTN_API const char* attn_diagnosis_json(const attn_diagnosis* diagnosis);
/* NULL is allowed. */
ATTN_API void attn_diagnosis_destroy(attn_diagnosis* diagnosis);
/* The ids of all known mistakes, separated by blanks: "scale-missing scale-squared ...". */
ATTN_API const char* attn_mistakes(void);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_ATTN_C_H_ */

// The C functions: each turns C structs into those of C++, calls, and turns the Status into a code and a sentence.
#include "bindings/c/convert.h"

using attn::c::guarded;
using attn::c::input;
using attn::c::missing;
using attn::c::optional_input;
using attn::c::optional_output;
using attn::c::output;
using attn::c::span_of;
using attn::c::with_options;

namespace {

constexpr std::int32_t kMostThreads = 1024;

attn::State state_of(const attn_state& state) {
  return {output(&state.max), output(&state.sum), output(&state.out)};
}

void run_inline(void* /*context*/, std::int64_t count, void (*task)(void*, std::int64_t, std::int32_t),
                void* task_context) {
  for (std::int64_t i = 0; i < count; ++i) task(task_context, i, 0);
}

}  // namespace

const char* attn_version(void) { return attn::kVersion; }

attn_tensor attn_contiguous(void* data, int32_t dtype, int32_t rank, const int64_t* shape) {
  attn_tensor tensor{data, dtype, shape ? rank : -1, {}, {}};  // a rank that every call refuses
  if (!shape) return tensor;
  std::uint64_t stride = 1;
  for (int d = std::min(rank, 4) - 1; d >= 0; --d) {
    tensor.shape[d] = shape[d];
    tensor.strides[d] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(shape[d]);
  }
  return tensor;
}

const attn_executor* attn_inline_executor(void) {
  static const attn_executor kInline{sizeof(attn_executor), 1, 0, nullptr, run_inline};
  return &kInline;
}

// The pool behind the C struct, which a host may read as it reads its own.
struct attn_pool {
  std::unique_ptr<attn::Executor> threads;
  attn_executor executor{};
};

int attn_pool_create(int32_t threads, attn_pool** pool) {
  return guarded([&] {
    if (!pool) return missing("pool");
    if (threads < 0 || threads > kMostThreads)
      return attn::Status::error("threads: " + std::to_string(threads) +
                                 "; give from 1 to 1024, or 0 for one a processor");
    auto made = std::make_unique<attn_pool>();
    made->threads = attn::make_thread_pool(threads);
    made->executor = {
        sizeof(attn_executor), made->threads->threads(), made->threads->least_work(), made->threads.get(),
        [](void* context, std::int64_t count, void (*task)(void*, std::int64_t, std::int32_t), void* task_context) {
          static_cast<attn::Executor*>(context)->run(count, task, task_context);
        }};
    *pool = made.release();
    return attn::Status();
  });
}

void attn_pool_destroy(attn_pool* pool) { delete pool; }
const attn_executor* attn_pool_executor(const attn_pool* pool) { return pool ? &pool->executor : nullptr; }

void attn_options_init(attn_options* options, size_t size) {
  attn_options defaults{};
  defaults.scale = std::nan("");
  defaults.window_left = defaults.window_right = -1;
  attn::c::init_sized(defaults, size, options);
}

int attn_forward(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_tensor* out,
                 const attn_tensor* lse, const attn_options* options) {
  return with_options(options, {{"q", q}, {"k", k}, {"v", v}, {"out", out}},
                      [&](const attn::AttentionOptions& read) {
                        return attn::forward(input(q), input(k), input(v), output(out), read, optional_output(lse));
                      });
}

void attn_plan_init(attn_plan_info* plan, size_t size) {
  attn_plan_info defaults{};
  attn::c::init_sized(defaults, size, plan);
}

int attn_plan(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_options* options,
              attn_plan_info* plan) {
  return with_options(options, {{"q", q}, {"k", k}, {"v", v}, {"plan", plan}},
                      [&](const attn::AttentionOptions& read) {
                        if (plan->size < sizeof(std::size_t)) return attn::c::no_size("plan");
                        attn::Plan made;
                        ATTN_RETURN_IF_ERROR(attn::plan(input(q), input(k), input(v), read, &made));
                        attn_plan_info info{};
                        info.path = made.path == "tiles" ? "tiles" : "specification";
                        info.isa = attn::name_of(made.isa);
                        info.compute = static_cast<std::int32_t>(made.compute);
                        info.threads = made.threads;
                        info.tasks = made.tasks;
                        info.query_tile_rows = made.query_tile_rows;
                        info.key_block = made.key_block;
                        info.tiles_full = made.tiles_full;
                        info.tiles_partial = made.tiles_partial;
                        info.tiles_skipped = made.tiles_skipped;
                        info.scratch_bytes = made.scratch_bytes;
                        info.flops = made.flops;
                        info.bytes = made.bytes;
                        info.table_bytes = made.table_bytes;
                        attn::c::write_sized(info, plan);
                        return attn::Status();
                      });
}

int attn_weights(const attn_tensor* q, const attn_tensor* k, const attn_tensor* weights,
                 const attn_options* options, const int64_t* rows, int64_t row_count, const int64_t* heads,
                 int64_t head_count) {
  return with_options(options, {{"q", q}, {"k", k}, {"weights", weights}},
                      [&](const attn::AttentionOptions& read) -> attn::Status {
                        ATTN_RETURN_IF_ERROR(attn::c::check_list("rows", rows, row_count));
                        ATTN_RETURN_IF_ERROR(attn::c::check_list("heads", heads, head_count));
                        return attn::weights(input(q), input(k), output(weights), read, span_of(rows, row_count),
                                             span_of(heads, head_count));
                      });
}

int attn_forward_state(const attn_tensor* q, const attn_tensor* k, const attn_tensor* v, const attn_state* state,
                       const attn_options* options) {
  return with_options(options, {{"q", q}, {"k", k}, {"v", v}, {"state", state}},
                      [&](const attn::AttentionOptions& read) {
                        return attn::forward_state(input(q), input(k), input(v), state_of(*state), read);
                      });
}

int attn_merge_states(const attn_state* into, const attn_state* next) {
  return guarded(
      [&] { return into && next ? attn::merge_states(state_of(*into), state_of(*next)) : missing("state"); });
}

int attn_finish_state(const attn_state* state, const attn_tensor* out, const attn_tensor* lse,
                      const attn_tensor* sinks) {
  return guarded([&] {
    if (!state) return missing("state");
    if (!out) return missing("out");
    return attn::finish_state(state_of(*state), output(out), optional_output(lse), optional_input(sinks));
  });
}

int attn_merge(const attn_tensor* outs, const attn_tensor* lses, int64_t count, const attn_tensor* out,
               const attn_tensor* lse) {
  return guarded([&] {
    if (!outs || !lses) return missing("outs and lses");
    if (count < 1) return attn::Status::error("count: " + std::to_string(count) + "; give at least one result");
    if (!out) return missing("out");
    std::vector<attn::TensorView> parts, part_lses;
    for (std::int64_t i = 0; i < count; ++i) {
      parts.push_back(input(outs + i));
      part_lses.push_back(input(lses + i));
    }
    return attn::merge(parts, part_lses, output(out), optional_output(lse));
  });
}

int attn_alibi_slopes(int32_t heads, float* slopes) {
  return guarded([&] {
    if (!slopes) return missing("slopes");
    if (heads < 0) return attn::Status::error("heads: " + std::to_string(heads) + " is below 0");
    const std::vector<float> made = attn::alibi_slopes(heads);
    std::copy(made.begin(), made.end(), slopes);
    return attn::Status();
  });
}

const char* attn_isa(void) { return attn::name_of(attn::current_isa()); }

const char* attn_isas(void) {
  static const std::string kNames = [] {
    std::string names;
    for (const attn::Isa isa : attn::available_isas())
      names += (names.empty() ? "" : " ") + std::string(attn::name_of(isa));
    return names;
  }();
  return kNames.c_str();
}

int attn_force_isa(const char* name) {
  return guarded([&] {
    if (!name) return missing("name");
    for (const attn::Isa isa : attn::available_isas()) {
      if (std::string(name) == attn::name_of(isa)) return attn::force_isa(isa);
    }
    return attn::Status::error("isa: \"" + std::string(name) + "\" can't run here; this machine has " +
                               attn_isas());
  });
}

#include "bindings/c/convert.h"

namespace attn::c {
namespace {

thread_local std::string last_message;

// Views of unknown dtypes have a rank that every call refuses.
template <class View>
View view_of(const attn_tensor& tensor) {
  View view;
  const bool known = tensor.dtype >= ATTN_F32 && tensor.dtype <= ATTN_BOOL;
  view.data = tensor.data;
  view.dtype = known ? static_cast<DType>(tensor.dtype) : DType::boolean;
  view.rank = known ? tensor.rank : -1;
  for (std::size_t d = 0; d < 4; ++d) {
    view.shape[d] = tensor.shape[d];
    view.strides[d] = tensor.strides[d];
  }
  return view;
}

}  // namespace

int fail(int code, const std::string& sentence) {
  try {
    last_message = sentence;
  } catch (const std::bad_alloc&) {
    last_message.clear();
  }
  return code;
}

TensorView input(const attn_tensor* tensor) { return view_of<TensorView>(*tensor); }
OutputView output(const attn_tensor* tensor) { return view_of<OutputView>(*tensor); }

Status read_options(const attn_options* given, Options* to) {
  attn_options defaults, read;
  attn_options_init(&defaults, sizeof defaults);
  ATTN_RETURN_IF_ERROR(attn::c::read_sized("options", given, defaults, &read));
  AttentionOptions& options = to->options;
  if (!std::isnan(read.scale)) options.scale = read.scale;
  if (read.softcap != 0) options.softcap = read.softcap;
  options.causal = read.causal != 0;
  if (read.alignment < ATTN_EQUAL_LENGTHS || read.alignment > ATTN_OFFSET)
    return Status::error("alignment: " + std::to_string(read.alignment) +
                         "; give ATTN_TOP_LEFT or one of its like");
  options.alignment = static_cast<Alignment>(read.alignment);
  options.position_offset = read.position_offset;
  if (read.window_left != -1) options.window_left = read.window_left;
  if (read.window_right != -1) options.window_right = read.window_right;
  options.sink_tokens = read.sink_tokens;
  options.mask = optional_input(read.mask);
  options.bias = optional_input(read.bias);
  options.alibi = optional_input(read.alibi);
  options.sinks = optional_input(read.sinks);
  if (read.sequences < 0) return Status::error("sequences: " + std::to_string(read.sequences) + " is below 0");
  for (const auto& [name, list] :
       {std::pair("position_offsets", read.position_offsets), std::pair("key_lengths", read.key_lengths),
        std::pair("query_lengths", read.query_lengths), std::pair("query_starts", read.query_starts),
        std::pair("key_starts", read.key_starts)}) {
    if (list && read.sequences == 0)
      return Status::error(std::string("sequences: 0, but ") + name + " is given; say for how many sequences");
  }
  const auto count = static_cast<std::size_t>(read.sequences);
  if (read.position_offsets) options.position_offsets = {read.position_offsets, count};
  if (read.key_lengths) options.key_lengths = {read.key_lengths, count};
  if (read.query_lengths) options.query_lengths = {read.query_lengths, count};
  if (read.query_starts) options.query_starts = {read.query_starts, count + 1};
  if (read.key_starts) options.key_starts = {read.key_starts, count + 1};
  options.key_offset = read.key_offset;
  options.bf16_products = read.bf16_products != 0;
  if (!read.executor) return {};
  if (read.executor == attn_inline_executor()) {
    options.executor = &inline_executor();
    return {};
  }
  attn_executor executor;
  ATTN_RETURN_IF_ERROR(read_sized("executor", read.executor, attn_executor{}, &executor));
  if (!executor.run || executor.threads < 1 || !(executor.least_work >= 0))
    return Status::error(
        "executor: it has no run function, no thread, or a least_work that is no number from 0 up");
  options.executor = &to->host.emplace(executor);
  return {};
}

}  // namespace attn::c

const char* attn_message(void) { return attn::c::last_message.c_str(); }

#include "model/decoder.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <set>
#include <string>

#include "attn/rope.h"
#include "model/decoder_shape.h"
#include "model/linear.h"
#include "model/rows.h"

namespace attn::model {
namespace {

// Tensors by name, each of the shape that it must have; at the end none may be left over.
class TensorTable {
 public:
  TensorTable(const formats::Gguf& gguf, WeightMemory& memory, Executor& executor)
      : gguf_(gguf), memory_(memory), executor_(executor) {
    taken_.insert("rope_freqs.weight");
  }

  bool has(const std::string& name) const { return gguf_.tensors.find(name) != gguf_.tensors.end(); }

  Status take(const std::string& name, const std::vector<std::int64_t>& shape, const formats::GgufTensor** tensor) {
    const auto found = gguf_.tensors.find(name);
    if (found == gguf_.tensors.end())
      return Status::error("model: the tensor " + name + " is missing; fetch or convert the file again");
    if (found->second.shape != shape) {
      return Status::error("model: " + name + " is " + text(found->second.shape) + ", but its facts say " +
                           text(shape) + "; fetch or convert the file again");
    }
    taken_.insert(name);
    *tensor = &found->second;
    return {};
  }

  Status take_numbers(const std::string& name, std::int64_t size, std::vector<float>* numbers) {
    const formats::GgufTensor* tensor = nullptr;
    ATTN_RETURN_IF_ERROR(take(name, {size}, &tensor));
    numbers->resize(static_cast<std::size_t>(size));
    formats::dequantise_row(*tensor, 0, numbers->data());
    return {};
  }

  Status take_matrix(const std::string& name, std::int64_t outputs, std::int64_t inputs, Matrix* matrix) {
    const formats::GgufTensor* tensor = nullptr;
    ATTN_RETURN_IF_ERROR(take(name, {outputs, inputs}, &tensor));
    return Matrix::pack(*tensor, memory_, executor_, matrix);
  }

  // A tensor that nobody knows would be left out of the sum, and the text be wrong.
  Status check_all_taken() const {
    for (const auto& [name, tensor] : gguf_.tensors) {
      if (!taken_.contains(name)) {
        return Status::error("model: the tensor " + formats::in_quotes(name) +
                             " is not known, and without it results would be wrong; give a plain \"llama\" model");
      }
    }
    return {};
  }

 private:
  static std::string text(const std::vector<std::int64_t>& shape) {
    std::string sizes;
    for (const std::int64_t size : shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    return "[" + sizes + "]";
  }

  const formats::Gguf& gguf_;
  WeightMemory& memory_;
  Executor& executor_;
  std::set<std::string, std::less<>> taken_;
};

}  // namespace

struct Decoder::Layer {
  std::vector<float> attention_norm, feed_norm;
  Matrix q, k, v, output, gate, up, down;
};

// Rows of one run.
struct Decoder::Work {
  std::int64_t rows;
  RopeTable rope;
  std::vector<float> x;         // [rows][width]: what flows from layer to layer
  std::vector<float> normed;    // [rows][width]
  std::vector<float> qkv;       // [rows][heads + 2 · kv_heads][head_dim]
  std::vector<float> attended;  // [rows][heads][head_dim]
  std::vector<float> gate, up;  // [rows][hidden]

  Work(const DecoderShape& shape, std::int64_t rows) : rows(rows) {
    const auto numbers = [rows](std::int64_t columns) { return static_cast<std::size_t>(rows * columns); };
    x.resize(numbers(shape.width));
    normed.resize(numbers(shape.width));
    qkv.resize(numbers((shape.heads + 2 * shape.kv_heads) * shape.head_dim));
    attended.resize(numbers(shape.heads * shape.head_dim));
    gate.resize(numbers(shape.hidden));
    up.resize(numbers(shape.hidden));
  }
};

Decoder::Decoder(formats::Gguf gguf, Executor& executor) : gguf_(std::move(gguf)), executor_(executor) {}
Decoder::~Decoder() = default;

Status Decoder::load(formats::Gguf gguf, Executor& executor, std::unique_ptr<Decoder>* decoder) {
  std::unique_ptr<Decoder> loaded(new Decoder(std::move(gguf), executor));
  ATTN_RETURN_IF_ERROR(read_decoder_shape(loaded->gguf_, &loaded->shape_));
  ATTN_RETURN_IF_ERROR(read_tokenizer(loaded->gguf_, &loaded->tokenizer_));
  loaded->shape_.vocabulary = loaded->tokenizer_->size();
  ATTN_RETURN_IF_ERROR(loaded->read_weights());
  *decoder = std::move(loaded);
  return {};
}

Status Decoder::read_weights() {
  TensorTable table(gguf_, memory_, executor_);
  const std::int64_t width = shape_.width, queries = shape_.heads * shape_.head_dim,
                     keys = shape_.kv_heads * shape_.head_dim;
  ATTN_RETURN_IF_ERROR(table.take("token_embd.weight", {shape_.vocabulary, width}, &embeddings_));
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const std::string name = "blk." + std::to_string(i) + ".";
    Layer& layer = layers_.emplace_back();
    ATTN_RETURN_IF_ERROR(table.take_numbers(name + "attn_norm.weight", width, &layer.attention_norm));
    ATTN_RETURN_IF_ERROR(table.take_numbers(name + "ffn_norm.weight", width, &layer.feed_norm));
    const auto take = [&](const char* matrix_name, std::int64_t outputs, std::int64_t inputs, Matrix* matrix) {
      return table.take_matrix(name + matrix_name + ".weight", outputs, inputs, matrix);
    };
    ATTN_RETURN_IF_ERROR(take("attn_q", queries, width, &layer.q));
    ATTN_RETURN_IF_ERROR(take("attn_k", keys, width, &layer.k));
    ATTN_RETURN_IF_ERROR(take("attn_v", keys, width, &layer.v));
    ATTN_RETURN_IF_ERROR(take("attn_output", width, queries, &layer.output));
    ATTN_RETURN_IF_ERROR(take("ffn_gate", shape_.hidden, width, &layer.gate));
    ATTN_RETURN_IF_ERROR(take("ffn_up", shape_.hidden, width, &layer.up));
    ATTN_RETURN_IF_ERROR(take("ffn_down", width, shape_.hidden, &layer.down));
  }
  ATTN_RETURN_IF_ERROR(table.take_numbers("output_norm.weight", width, &output_norm_));
  // Without an output matrix of its own a model uses its embeddings ("tied").
  const char* output = table.has("output.weight") ? "output.weight" : "token_embd.weight";
  ATTN_RETURN_IF_ERROR(table.take_matrix(output, shape_.vocabulary, width, &output_));
  return table.check_all_taken();
}

std::int64_t Decoder::weight_bytes() const {
  std::int64_t bytes = output_.bytes();
  for (const Layer& layer : layers_) {
    for (const Matrix* matrix : {&layer.q, &layer.k, &layer.v, &layer.output, &layer.gate, &layer.up, &layer.down})
      bytes += matrix->bytes();
  }
  return bytes;
}

KvCacheOptions Decoder::cache_options(CacheType type) const {
  return {.kv_heads = shape_.kv_heads, .key_dim = shape_.head_dim, .type = type, .executor = &executor_};
}

Status Decoder::embed(std::span<const Token> tokens, std::vector<float>* rows) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= shape_.vocabulary) {
      return Status::error("model: token " + std::to_string(tokens[i]) + ", but there are " +
                           std::to_string(shape_.vocabulary) + ", counted from 0");
    }
    formats::dequantise_row(*embeddings_, tokens[i], rows->data() + i * static_cast<std::size_t>(shape_.width));
  }
  return {};
}

Status Decoder::run_layer(std::int64_t index, LayerAttention& attention, Work& work) const {
  const Layer& layer = layers_[static_cast<std::size_t>(index)];
  const std::int64_t rows = work.rows, width = shape_.width, hidden = shape_.hidden, dim = shape_.head_dim;
  const std::int64_t columns = (shape_.heads + 2 * shape_.kv_heads) * dim;
  float* const q = work.qkv.data();
  float* const k = q + shape_.heads * dim;
  float* const v = k + shape_.kv_heads * dim;

  rms_norm(work.x.data(), rows, width, layer.attention_norm.data(), shape_.norm_epsilon, work.normed.data(),
           executor_);
  const Product projections[] = {{&layer.q, q, columns}, {&layer.k, k, columns}, {&layer.v, v, columns}};
  ATTN_RETURN_IF_ERROR(multiply(work.normed.data(), rows, width, projections, executor_));

  const auto heads_of = [&](float* data, std::int64_t heads, std::int64_t stride) {
    return OutputView(data, DType::f32, {heads, rows, dim}, {dim, stride, 1});
  };
  const OutputView queries = heads_of(q, shape_.heads, columns), keys = heads_of(k, shape_.kv_heads, columns);
  for (const OutputView& rotated : {queries, keys})
    ATTN_RETURN_IF_ERROR(rotate_by_table(rotated, rotated, work.rope, RopeLayout::adjacent_pairs, &executor_));
  ATTN_RETURN_IF_ERROR(attention.attend(index, queries, keys, heads_of(v, shape_.kv_heads, columns),
                                        heads_of(work.attended.data(), shape_.heads, shape_.heads * dim)));
  const Product output[] = {{&layer.output, work.x.data(), width, nullptr, Into::add}};
  ATTN_RETURN_IF_ERROR(multiply(work.attended.data(), rows, shape_.heads * dim, output, executor_));

  rms_norm(work.x.data(), rows, width, layer.feed_norm.data(), shape_.norm_epsilon, work.normed.data(), executor_);
  const Product feed[] = {{&layer.gate, work.gate.data(), hidden}, {&layer.up, work.up.data(), hidden}};
  ATTN_RETURN_IF_ERROR(multiply(work.normed.data(), rows, width, feed, executor_));
  silu_product(work.gate.data(), work.up.data(), rows * hidden, executor_);
  const Product down[] = {{&layer.down, work.x.data(), width, nullptr, Into::add}};
  ATTN_RETURN_IF_ERROR(multiply(work.gate.data(), rows, hidden, down, executor_));
  return {};
}

Status Decoder::run_layers(std::span<const Token> tokens, LayerAttention& attention, Work& work) const {
  std::vector<std::int64_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), attention.length());
  ATTN_RETURN_IF_ERROR(rope_table(shape_.rope_frequencies, 1, positions, &work.rope));
  ATTN_RETURN_IF_ERROR(embed(tokens, &work.x));
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
    ATTN_RETURN_IF_ERROR(run_layer(layer, attention, work));
  rms_norm(work.x.data(), work.rows, shape_.width, output_norm_.data(), shape_.norm_epsilon, work.normed.data(),
           executor_);
  return {};
}

Status Decoder::run(std::span<const Token> tokens, LayerAttention& attention, std::vector<float>* rows) const {
  const std::int64_t before = attention.length();
  Status status;
  try {
    Work work(shape_, static_cast<std::int64_t>(tokens.size()));
    status = run_layers(tokens, attention, work);
    if (status.ok()) *rows = std::move(work.normed);
  } catch (const std::bad_alloc&) {
    status = Status::error("model: not enough memory for " + std::to_string(tokens.size()) +
                           " tokens at once; run fewer together");
  }
  if (!status.ok()) attention.take_back(before);
  return status;
}

Status Decoder::logits(const float* rows, std::int64_t count, float* logits) const {
  const Product product[] = {{&output_, logits, shape_.vocabulary}};
  return multiply(rows, count, shape_.width, product, executor_);
}

}  // namespace attn::model

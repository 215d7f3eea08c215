#include "model/encoder.h"

#include <cmath>
#include <map>
#include <new>

#include <nlohmann/json.hpp>

#include "formats/read.h"
#include "model/linear.h"
#include "model/rows.h"
#include "model/word_pieces.h"

namespace attn::model {
namespace {

constexpr const char* kAgain = "; fetch the model again";
constexpr std::int64_t kMostSize = std::int64_t{1} << 24;

Status read_size(const nlohmann::json& config, const char* key, std::int64_t* size) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_number_integer() || found->get<std::int64_t>() < 1 ||
      found->get<std::int64_t>() > kMostSize) {
    return Status::error("model: config.json has no " + std::string(key) + " of 1 to " + std::to_string(kMostSize) +
                         kAgain);
  }
  *size = found->get<std::int64_t>();
  return {};
}

Status require_text(const nlohmann::json& config, const char* key, const std::string& needed) {
  const auto found = config.find(key);
  const bool fits = found != config.end() && found->is_string() && found->get<std::string>() == needed;
  if (fits) return {};
  const bool is_text = found != config.end() && found->is_string();
  return Status::error("model: config.json has " + std::string(key) + " " +
                       (is_text ? formats::in_quotes(found->get<std::string>()) : "left out or no text") +
                       ", but only \"" + needed +
                       "\" is available in this version; give a BERT model such as minilm");
}

Status read_shape(const std::string& path, EncoderShape* shape) {
  formats::Bytes file;
  ATTN_RETURN_IF_ERROR(formats::map_file(path, &file));
  const nlohmann::json config = nlohmann::json::parse(file.text(), nullptr, false);
  if (!config.is_object()) return Status::error("model: " + path + " is no JSON object" + kAgain);
  ATTN_RETURN_IF_ERROR(require_text(config, "model_type", "bert"));
  ATTN_RETURN_IF_ERROR(require_text(config, "hidden_act", "gelu"));
  if (config.contains("position_embedding_type"))
    ATTN_RETURN_IF_ERROR(require_text(config, "position_embedding_type", "absolute"));
  ATTN_RETURN_IF_ERROR(read_size(config, "num_hidden_layers", &shape->layers));
  ATTN_RETURN_IF_ERROR(read_size(config, "hidden_size", &shape->width));
  ATTN_RETURN_IF_ERROR(read_size(config, "num_attention_heads", &shape->heads));
  ATTN_RETURN_IF_ERROR(read_size(config, "intermediate_size", &shape->hidden));
  ATTN_RETURN_IF_ERROR(read_size(config, "vocab_size", &shape->vocabulary));
  ATTN_RETURN_IF_ERROR(read_size(config, "max_position_embeddings", &shape->context));
  ATTN_RETURN_IF_ERROR(read_size(config, "type_vocab_size", &shape->types));
  const auto epsilon = config.find("layer_norm_eps");
  if (epsilon == config.end() || !epsilon->is_number() ||
      !(epsilon->get<double>() >= 0 && epsilon->get<double>() < 1))
    return Status::error("model: config.json has no layer_norm_eps from 0 to 1" + std::string(kAgain));
  shape->norm_epsilon = epsilon->get<float>();
  if (shape->width % shape->heads != 0) {
    return Status::error("model: hidden_size " + std::to_string(shape->width) + " does not split into " +
                         std::to_string(shape->heads) + " heads" + kAgain);
  }
  return {};
}

}  // namespace

struct Encoder::Layer {
  Matrix q, k, v, output, feed, feed_output;
  std::vector<float> q_bias, k_bias, v_bias, output_bias, feed_bias, feed_output_bias;
  std::vector<float> attention_norm_weight, attention_norm_bias, feed_norm_weight, feed_norm_bias;
};

// Tensors of model.safetensors, each of the shape that it must have.
struct Encoder::Reader {
  std::map<std::string, formats::Tensor, std::less<>> tensors;
  std::string prefix;  // some files name everything "bert.…"
  WeightMemory& memory;
  Executor& executor;

  Status tensor(const std::string& name, const std::vector<std::int64_t>& shape, formats::Tensor* tensor) const {
    const auto found = tensors.find(prefix + name);
    if (found == tensors.end()) return Status::error("model: model.safetensors has no " + prefix + name + kAgain);
    *tensor = found->second;
    if (tensor->shape != shape || tensor->type == formats::ElementType::f64 || !formats::dtype_of(tensor->type)) {
      return Status::error("model: " + name + " is " + formats::name_of(tensor->type) +
                           formats::shape_text(tensor->shape) + ", but config.json says f32, f16 or bf16 " +
                           formats::shape_text(shape) + kAgain);
    }
    return {};
  }

  Status matrix(const std::string& name, std::int64_t outputs, std::int64_t inputs, Matrix* matrix,
                std::vector<float>* bias) const {
    formats::Tensor weights;
    TensorView view;
    ATTN_RETURN_IF_ERROR(tensor(name + ".weight", {outputs, inputs}, &weights));
    ATTN_RETURN_IF_ERROR(formats::view_of(weights, &view));
    ATTN_RETURN_IF_ERROR(Matrix::pack(view, memory, executor, matrix));
    return numbers(name + ".bias", {outputs}, bias);
  }

  Status numbers(const std::string& name, const std::vector<std::int64_t>& shape,
                 std::vector<float>* numbers) const {
    formats::Tensor read;
    ATTN_RETURN_IF_ERROR(tensor(name, shape, &read));
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    numbers->resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) (*numbers)[static_cast<std::size_t>(i)] = number(read, i);
    return {};
  }

  Status norm(const std::string& name, std::int64_t width, std::vector<float>* weight,
              std::vector<float>* bias) const {
    ATTN_RETURN_IF_ERROR(numbers(name + ".LayerNorm.weight", {width}, weight));
    return numbers(name + ".LayerNorm.bias", {width}, bias);
  }

  // Element i of a row-major tensor.
  static float number(const formats::Tensor& tensor, std::int64_t i) {
    const auto* at = static_cast<const unsigned char*>(tensor.data) +
                     i * static_cast<std::int64_t>(formats::size_of(tensor.type));
    if (tensor.type == formats::ElementType::f32) return formats::load<float>(at);
    const auto half = formats::load<std::uint16_t>(at);
    return tensor.type == formats::ElementType::f16 ? f16_to_float(half) : bf16_to_float(half);
  }
};

Encoder::Encoder(Executor& executor) : executor_(executor) {}
Encoder::~Encoder() = default;

Status Encoder::load(const std::string& folder, Executor& executor, std::unique_ptr<Encoder>* encoder) {
  std::unique_ptr<Encoder> loaded(new Encoder(executor));
  ATTN_RETURN_IF_ERROR(read_shape(folder + "/config.json", &loaded->shape_));
  ATTN_RETURN_IF_ERROR(read_word_pieces(folder, &loaded->tokenizer_));
  if (loaded->tokenizer_->size() > loaded->shape_.vocabulary) {
    return Status::error("model: vocab.txt has " + std::to_string(loaded->tokenizer_->size()) +
                         " tokens, but config.json says " + std::to_string(loaded->shape_.vocabulary) + kAgain);
  }
  ATTN_RETURN_IF_ERROR(loaded->read_weights(folder));
  *encoder = std::move(loaded);
  return {};
}

Status Encoder::read_weights(const std::string& folder) {
  Reader reader{{}, "", memory_, executor_};
  ATTN_RETURN_IF_ERROR(formats::read_safetensors(folder + "/model.safetensors", &reader.tensors));
  const std::string word_embeddings = "embeddings.word_embeddings.weight";
  if (reader.tensors.contains("bert." + word_embeddings)) reader.prefix = "bert.";
  const std::int64_t width = shape_.width, hidden = shape_.hidden;
  ATTN_RETURN_IF_ERROR(reader.tensor(word_embeddings, {shape_.vocabulary, width}, &words_));
  ATTN_RETURN_IF_ERROR(
      reader.numbers("embeddings.position_embeddings.weight", {shape_.context, width}, &positions_));
  ATTN_RETURN_IF_ERROR(reader.numbers("embeddings.token_type_embeddings.weight", {shape_.types, width}, &type_));
  ATTN_RETURN_IF_ERROR(reader.norm("embeddings", width, &embedding_weight_, &embedding_bias_));
  for (std::int64_t i = 0; i < shape_.layers; ++i) {
    const std::string name = "encoder.layer." + std::to_string(i) + ".", self = name + "attention.self.";
    Layer& layer = layers_.emplace_back();
    ATTN_RETURN_IF_ERROR(reader.matrix(self + "query", width, width, &layer.q, &layer.q_bias));
    ATTN_RETURN_IF_ERROR(reader.matrix(self + "key", width, width, &layer.k, &layer.k_bias));
    ATTN_RETURN_IF_ERROR(reader.matrix(self + "value", width, width, &layer.v, &layer.v_bias));
    ATTN_RETURN_IF_ERROR(
        reader.matrix(name + "attention.output.dense", width, width, &layer.output, &layer.output_bias));
    ATTN_RETURN_IF_ERROR(reader.matrix(name + "intermediate.dense", hidden, width, &layer.feed, &layer.feed_bias));
    ATTN_RETURN_IF_ERROR(
        reader.matrix(name + "output.dense", width, hidden, &layer.feed_output, &layer.feed_output_bias));
    ATTN_RETURN_IF_ERROR(
        reader.norm(name + "attention.output", width, &layer.attention_norm_weight, &layer.attention_norm_bias));
    ATTN_RETURN_IF_ERROR(reader.norm(name + "output", width, &layer.feed_norm_weight, &layer.feed_norm_bias));
  }
  return {};
}

Status Encoder::embed(std::span<const Token> tokens, std::vector<float>* x) const {
  const std::int64_t width = shape_.width;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    if (tokens[row] < 0 || tokens[row] >= shape_.vocabulary) {
      return Status::error("model: token " + std::to_string(tokens[row]) + ", but there are " +
                           std::to_string(shape_.vocabulary) + ", counted from 0");
    }
    for (std::int64_t i = 0; i < width; ++i) {
      const auto column = static_cast<std::size_t>(i), at = row * static_cast<std::size_t>(width) + column;
      (*x)[at] = Reader::number(words_, tokens[row] * width + i) + type_[column] + positions_[at];
    }
  }
  layer_norm(x->data(), static_cast<std::int64_t>(tokens.size()), width, embedding_weight_.data(),
             embedding_bias_.data(), shape_.norm_epsilon, executor_);
  return {};
}

Status Encoder::run_layer(const Layer& layer, std::int64_t index, std::int64_t rows, LayerAttention& attention,
                          std::vector<float>* x) const {
  const std::int64_t width = shape_.width, hidden = shape_.hidden, dim = width / shape_.heads;
  std::vector<float> qkv(static_cast<std::size_t>(rows * width * 3)),
      attended(static_cast<std::size_t>(rows * width)), between(static_cast<std::size_t>(rows * hidden));
  float *q = qkv.data(), *k = q + width, *v = k + width;
  const Product projections[] = {{&layer.q, q, 3 * width, layer.q_bias.data()},
                                 {&layer.k, k, 3 * width, layer.k_bias.data()},
                                 {&layer.v, v, 3 * width, layer.v_bias.data()}};
  ATTN_RETURN_IF_ERROR(multiply(x->data(), rows, width, projections, executor_));
  const auto heads_of = [&](float* data, std::int64_t stride) {
    return OutputView(data, DType::f32, {shape_.heads, rows, dim}, {dim, stride, 1});
  };
  ATTN_RETURN_IF_ERROR(attention.attend(index, heads_of(q, 3 * width), heads_of(k, 3 * width),
                                        heads_of(v, 3 * width), heads_of(attended.data(), width)));
  const auto add_product = [&](const std::vector<float>& from, std::int64_t inputs, const Matrix& matrix,
                               const std::vector<float>& bias) {
    const Product product[] = {{&matrix, x->data(), width, bias.data(), Into::add}};
    return multiply(from.data(), rows, inputs, product, executor_);
  };
  ATTN_RETURN_IF_ERROR(add_product(attended, width, layer.output, layer.output_bias));
  layer_norm(x->data(), rows, width, layer.attention_norm_weight.data(), layer.attention_norm_bias.data(),
             shape_.norm_epsilon, executor_);
  const Product feed[] = {{&layer.feed, between.data(), hidden, layer.feed_bias.data()}};
  ATTN_RETURN_IF_ERROR(multiply(x->data(), rows, width, feed, executor_));
  gelu(between.data(), rows * hidden, executor_);
  ATTN_RETURN_IF_ERROR(add_product(between, hidden, layer.feed_output, layer.feed_output_bias));
  layer_norm(x->data(), rows, width, layer.feed_norm_weight.data(), layer.feed_norm_bias.data(),
             shape_.norm_epsilon, executor_);
  return {};
}

Status Encoder::run(std::span<const Token> tokens, LayerAttention& attention, std::vector<float>* rows) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (attention.length() != 0 || count > shape_.context) {
    return Status::error("model: positions " + std::to_string(attention.length()) + " to " +
                         std::to_string(attention.length() + count) +
                         ", but an encoder runs a whole text of at most " + std::to_string(shape_.context) +
                         " tokens; give a shorter one");
  }
  try {
    std::vector<float> x(static_cast<std::size_t>(count * shape_.width));
    ATTN_RETURN_IF_ERROR(embed(tokens, &x));
    for (std::size_t i = 0; i < layers_.size(); ++i)
      ATTN_RETURN_IF_ERROR(run_layer(layers_[i], static_cast<std::int64_t>(i), count, attention, &x));
    *rows = std::move(x);
    return {};
  } catch (const std::bad_alloc&) {
    return Status::error("model: not enough memory for " + std::to_string(count) + " tokens; give a shorter text");
  }
}

std::vector<float> mean_pooled(std::span<const float> rows, std::int64_t width) {
  const auto columns = static_cast<std::size_t>(width);
  std::vector<double> sums(columns);
  for (std::size_t i = 0; i < rows.size(); ++i) sums[i % columns] += rows[i];
  double squares = 0;
  for (const double sum : sums) squares += sum * sum;
  std::vector<float> pooled;
  // The mean's own divisor cancels out.
  for (const double sum : sums) pooled.push_back(static_cast<float>(squares > 0 ? sum / std::sqrt(squares) : 0));
  return pooled;
}

}  // namespace attn::model

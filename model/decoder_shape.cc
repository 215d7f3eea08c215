#include "model/decoder_shape.h"

#include <cmath>
#include <limits>
#include <string>

#include "attn/rope.h"
#include "model/facts.h"

namespace attn::model {
namespace {

constexpr const char* kAgain = "; fetch or convert the file again";

// No decoder is near: products of sizes stay far from 2^63, and no loop runs over claims alone.
constexpr std::int64_t kMostLayers = 4096, kMostWidth = std::int64_t{1} << 20;

Status read_size(const formats::Gguf& gguf, const std::string& key, std::int64_t most, std::int64_t* size) {
  const std::int64_t* value = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, key, &value));
  if (*value < 1 || *value > most) {
    return Status::error("model: " + key + " is " + std::to_string(*value) + "; 1 to " + std::to_string(most) +
                         " makes sense" + kAgain);
  }
  *size = *value;
  return {};
}

Status read_size_or(const formats::Gguf& gguf, const std::string& key, std::int64_t most, std::int64_t otherwise,
                    std::int64_t* size) {
  if (gguf.facts.find(key) != gguf.facts.end()) return read_size(gguf, key, most, size);
  *size = otherwise;
  return {};
}

Status check_architecture(const formats::Gguf& gguf) {
  const std::string* architecture = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "general.architecture", &architecture));
  if (*architecture != "llama") {
    return Status::error("model: architecture " + formats::in_quotes(*architecture) +
                         " is not available in this version; give a GGUF file of \"llama\", as SmolLM2 is");
  }
  std::optional<std::int64_t> experts;
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, "llama.expert_count", &experts));
  if (experts.value_or(0) > 0)
    return Status::error("model: mixtures of experts are not available in this version; give one without experts");
  return {};
}

// As llama.cpp reads them: scaling is linear where there is a factor and nothing else is said, and an old key may hold it.
Status read_rope_scaling(const formats::Gguf& gguf, RopeOptions* options) {
  std::optional<std::string> type;
  std::optional<double> factor, old_factor;
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, "llama.rope.scaling.type", &type));
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, "llama.rope.scaling.factor", &factor));
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, "llama.rope.scale_linear", &old_factor));
  if (!factor) factor = old_factor;
  if (type == "none") return {};
  if (type.value_or("linear") != "linear") {
    return Status::error("model: llama.rope.scaling.type " + formats::in_quotes(*type) +
                         " is not available in this version; \"none\" and \"linear\" are");
  }
  if (factor.value_or(0) == 0 || *factor == 1) return {};
  options->scaling = RopeScaling::linear;
  options->factor = *factor;
  return {};
}

Status read_rope_frequencies(const formats::Gguf& gguf, std::int64_t head_dim, std::vector<double>* frequencies) {
  RopeOptions options;
  std::optional<double> base;
  ATTN_RETURN_IF_ERROR(read_size_or(gguf, "llama.rope.dimension_count", head_dim, head_dim, &options.rotary_dim));
  ATTN_RETURN_IF_ERROR(optional_fact(gguf, "llama.rope.freq_base", &base));
  options.base = base.value_or(options.base);
  ATTN_RETURN_IF_ERROR(read_rope_scaling(gguf, &options));
  const Status status = rope_frequencies(options, head_dim, frequencies);
  if (!status.ok()) return Status::error("model: llama.rope: " + status.message());
  return {};
}

// Llama 3.1 divides each frequency by a number of its own.
Status divide_frequencies(const formats::Gguf& gguf, std::vector<double>* frequencies) {
  const auto found = gguf.tensors.find("rope_freqs.weight");
  if (found == gguf.tensors.end()) return {};
  const formats::GgufTensor& tensor = found->second;
  if (tensor.rows() != 1 || tensor.columns() != static_cast<std::int64_t>(frequencies->size())) {
    return Status::error("model: rope_freqs.weight has " + std::to_string(tensor.columns()) + " numbers, but " +
                         std::to_string(frequencies->size()) + " pairs turn" + kAgain);
  }
  std::vector<float> divisors(frequencies->size());
  formats::dequantise_row(tensor, 0, divisors.data());
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    if (!(divisors[i] > 0) || std::isinf(divisors[i]))
      return Status::error("model: rope_freqs.weight holds a number that is not above 0" + std::string(kAgain));
    (*frequencies)[i] /= divisors[i];
  }
  return {};
}

}  // namespace

Status read_decoder_shape(const formats::Gguf& gguf, DecoderShape* shape) {
  ATTN_RETURN_IF_ERROR(check_architecture(gguf));
  DecoderShape read;
  ATTN_RETURN_IF_ERROR(read_size(gguf, "llama.block_count", kMostLayers, &read.layers));
  ATTN_RETURN_IF_ERROR(read_size(gguf, "llama.embedding_length", kMostWidth, &read.width));
  ATTN_RETURN_IF_ERROR(read_size(gguf, "llama.feed_forward_length", kMostWidth, &read.hidden));
  ATTN_RETURN_IF_ERROR(read_size(gguf, "llama.attention.head_count", kMostLayers, &read.heads));
  ATTN_RETURN_IF_ERROR(
      read_size_or(gguf, "llama.attention.head_count_kv", kMostLayers, read.heads, &read.kv_heads));
  ATTN_RETURN_IF_ERROR(
      read_size(gguf, "llama.context_length", std::numeric_limits<std::int32_t>::max(), &read.context));
  ATTN_RETURN_IF_ERROR(read_size_or(gguf, "llama.attention.key_length", kMostWidth,
                                    std::max<std::int64_t>(1, read.width / read.heads), &read.head_dim));
  if (read.heads % read.kv_heads != 0) {
    return Status::error("model: " + std::to_string(read.heads) + " query heads don't share " +
                         std::to_string(read.kv_heads) + " key/value heads evenly" + kAgain);
  }
  const double* epsilon = nullptr;
  ATTN_RETURN_IF_ERROR(require_fact(gguf, "llama.attention.layer_norm_rms_epsilon", &epsilon));
  if (!(*epsilon >= 0 && *epsilon < 1))
    return Status::error("model: llama.attention.layer_norm_rms_epsilon is out of range" + std::string(kAgain));
  read.norm_epsilon = static_cast<float>(*epsilon);

  ATTN_RETURN_IF_ERROR(read_rope_frequencies(gguf, read.head_dim, &read.rope_frequencies));
  ATTN_RETURN_IF_ERROR(divide_frequencies(gguf, &read.rope_frequencies));
  *shape = std::move(read);
  return {};
}

}  // namespace attn::model

#include "small_model.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "attn/dtype.h"

namespace attn::model {
namespace {

using formats::GgufType;

template <class Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string text_of(const std::string& text) { return bytes_of(static_cast<std::uint64_t>(text.size())) + text; }

// GGUF's numbers for types of values.
constexpr std::uint32_t kUint32 = 4, kInt32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9;

template <class Values, class Write>
std::string array_of(std::uint32_t type, const Values& values, const Write& write) {
  std::string bytes = bytes_of(kArray) + bytes_of(type) + bytes_of(static_cast<std::uint64_t>(values.size()));
  for (const auto& value : values) bytes += write(value);
  return bytes;
}

std::string half(float number) { return bytes_of(float_to_f16(number)); }

}  // namespace

void GgufWriter::fact(const std::string& key, const std::string& value) {
  facts_[key] = bytes_of(kString) + text_of(value);
}
void GgufWriter::fact(const std::string& key, std::uint32_t value) {
  facts_[key] = bytes_of(kUint32) + bytes_of(value);
}
void GgufWriter::fact(const std::string& key, float value) { facts_[key] = bytes_of(kFloat32) + bytes_of(value); }
void GgufWriter::fact(const std::string& key, bool value) {
  facts_[key] = bytes_of(kBool) + bytes_of(static_cast<std::uint8_t>(value));
}
void GgufWriter::fact(const std::string& key, const std::vector<std::string>& values) {
  facts_[key] = array_of(kString, values, text_of);
}
void GgufWriter::fact(const std::string& key, const std::vector<float>& values) {
  facts_[key] = array_of(kFloat32, values, bytes_of<float>);
}
void GgufWriter::fact(const std::string& key, const std::vector<std::int32_t>& values) {
  facts_[key] = array_of(kInt32, values, bytes_of<std::int32_t>);
}

void GgufWriter::tensor(const std::string& name, const std::vector<std::int64_t>& shape, GgufType type,
                        std::string bytes) {
  tensors_[name] = {shape, type, std::move(bytes)};
}

std::string GgufWriter::finish() const {
  constexpr std::size_t kAlignment = 32;
  const auto aligned = [](std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; };
  std::string file = "GGUF" + bytes_of(std::uint32_t{3}) + bytes_of(static_cast<std::uint64_t>(tensors_.size())) +
                     bytes_of(static_cast<std::uint64_t>(facts_.size()));
  for (const auto& [key, value] : facts_) file += text_of(key) + value;
  std::string data;
  for (const auto& [name, tensor] : tensors_) {
    file += text_of(name) + bytes_of(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) file += bytes_of(*size);
    file += bytes_of(static_cast<std::uint32_t>(tensor.type)) + bytes_of(static_cast<std::uint64_t>(data.size()));
    data += tensor.bytes;
    data.resize(aligned(data.size()));
  }
  file.resize(aligned(file.size()));
  return file + data;
}

std::string random_tensor(GgufType type, std::int64_t numbers, float size, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::string bytes;
  const formats::GgufBlock block = formats::block_of(type);
  for (std::int64_t done = 0; done < numbers; done += block.numbers) {
    const std::size_t start = bytes.size();
    for (std::int64_t i = 0; i < block.bytes; ++i) bytes += static_cast<char>(random());
    const float step = size * normal(random);
    const auto put = [&](std::size_t at, const std::string& piece) {
      bytes.replace(start + at, piece.size(), piece);
    };
    switch (type) {
      case GgufType::f32: put(0, bytes_of(step)); break;
      case GgufType::f16: put(0, half(step)); break;
      case GgufType::bf16: put(0, bytes_of(float_to_bf16(step))); break;
      case GgufType::q8_0: put(0, half(step / 64)); break;
      case GgufType::q4_0: put(0, half(step / 6)); break;
      case GgufType::q4_1: put(0, half(step / 6) + half(-step)); break;
      case GgufType::q4_k: put(0, half(step / 200) + half(step / 60)); break;
      case GgufType::q6_k: put(208, half(step / 1000)); break;
    }
  }
  return bytes;
}

GgufWriter small_model(const SmallModel& model, std::uint64_t seed) {
  GgufWriter file;
  file.fact("general.architecture", std::string("llama"));
  const auto size = [&](const char* key, std::int64_t value) { file.fact(key, static_cast<std::uint32_t>(value)); };
  size("llama.block_count", model.layers);
  size("llama.embedding_length", model.width);
  size("llama.feed_forward_length", model.hidden);
  size("llama.attention.head_count", model.heads);
  size("llama.attention.head_count_kv", model.kv_heads);
  size("llama.attention.key_length", model.head_dim);
  size("llama.context_length", 512);
  file.fact("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  file.fact("llama.rope.freq_base", 10000.0F);

  std::vector<std::string> texts{"<unk>", "<s>", "</s>"};
  std::vector<std::int32_t> kinds{2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(byte));
    texts.emplace_back(text);
    kinds.push_back(6);
  }
  for (const char* piece : {"\u2581", "\u2581it", "it", "wa", "was", "\u2581was", "th", "the", "\u2581the", "i",
                            "t", "w", "a", "s", "h", "e"}) {
    texts.emplace_back(piece);
    kinds.push_back(1);
  }
  std::vector<float> scores;
  for (std::size_t i = 0; i < texts.size(); ++i) scores.push_back(-static_cast<float>(i));
  file.fact("tokenizer.ggml.model", std::string("llama"));
  file.fact("tokenizer.ggml.tokens", texts);
  file.fact("tokenizer.ggml.scores", scores);
  file.fact("tokenizer.ggml.token_type", kinds);
  size("tokenizer.ggml.bos_token_id", 1);
  size("tokenizer.ggml.eos_token_id", 2);
  size("tokenizer.ggml.unknown_token_id", 0);

  std::mt19937_64 random(seed);
  const auto matrix = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    file.tensor(name, {outputs, inputs}, model.type,
                random_tensor(model.type, outputs * inputs, 1.5F / std::sqrt(static_cast<float>(inputs)), random));
  };
  const auto norm = [&](const std::string& name) {
    std::string bytes;
    for (std::int64_t i = 0; i < model.width; ++i)
      bytes += bytes_of(0.5F + static_cast<float>(random() % 1000) / 1000);
    file.tensor(name, {model.width}, GgufType::f32, bytes);
  };
  const auto vocabulary = static_cast<std::int64_t>(texts.size());
  const std::int64_t queries = model.heads * model.head_dim, keys = model.kv_heads * model.head_dim;
  matrix("token_embd.weight", vocabulary, model.width);
  if (!model.tied) matrix("output.weight", vocabulary, model.width);
  norm("output_norm.weight");
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    norm(layer + "attn_norm.weight");
    norm(layer + "ffn_norm.weight");
    matrix(layer + "attn_q.weight", queries, model.width);
    matrix(layer + "attn_k.weight", keys, model.width);
    matrix(layer + "attn_v.weight", keys, model.width);
    matrix(layer + "attn_output.weight", model.width, queries);
    matrix(layer + "ffn_gate.weight", model.hidden, model.width);
    matrix(layer + "ffn_up.weight", model.hidden, model.width);
    matrix(layer + "ffn_down.weight", model.width, model.hidden);
  }
  return file;
}

TemporaryFile::TemporaryFile(const std::string& bytes)
    : path_((std::filesystem::temp_directory_path() /
             ("attn-model-" + std::to_string(std::random_device()()) + ".gguf"))
                .string()) {
  std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TemporaryFile::~TemporaryFile() { std::filesystem::remove(path_); }

}  // namespace attn::model

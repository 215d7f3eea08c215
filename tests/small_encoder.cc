#include "small_encoder.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "reference/reference.h"

namespace attn::model {
namespace {

using Rows = std::vector<std::vector<double>>;

std::string layer_name(std::int64_t layer) { return "encoder.layer." + std::to_string(layer) + "."; }

// x·Wᵀ + b.
Rows product(const Rows& x, const std::vector<float>& w, const std::vector<float>& b) {
  Rows result;
  for (const auto& row : x) {
    std::vector<double>& out = result.emplace_back(b.begin(), b.end());
    for (std::size_t o = 0; o < b.size(); ++o) {
      for (std::size_t k = 0; k < row.size(); ++k) out[o] += row[k] * w[o * row.size() + k];
    }
  }
  return result;
}

void add(const Rows& more, Rows* rows) {
  for (std::size_t r = 0; r < rows->size(); ++r) {
    for (std::size_t i = 0; i < (*rows)[r].size(); ++i) (*rows)[r][i] += more[r][i];
  }
}

void normalise(const std::vector<float>& w, const std::vector<float>& b, Rows* rows) {
  for (auto& row : *rows) {
    const double n = static_cast<double>(row.size());
    double mean = 0, variance = 0;
    for (const double x : row) mean += x / n;
    for (const double x : row) variance += (x - mean) * (x - mean) / n;
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] = (row[i] - mean) / std::sqrt(variance + 1e-6F) * w[i] + b[i];
  }
}

}  // namespace

SmallEncoder::SmallEncoder(std::vector<std::string> words, std::uint64_t seed)
    : vocabulary{"[PAD]", "[UNK]", "[CLS]", "[SEP]"} {
  vocabulary.insert(vocabulary.end(), words.begin(), words.end());
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  const auto tensor = [&](const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    for (std::int64_t i = 0; i < count; ++i) tensors[name].push_back(normal(random));
    shapes[name] = std::move(shape);
  };
  const auto dense = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    tensor(name + ".weight", {outputs, inputs});
    tensor(name + ".bias", {outputs});
  };
  const auto norm = [&](const std::string& name) {
    tensor(name + ".LayerNorm.weight", {width});
    tensor(name + ".LayerNorm.bias", {width});
  };
  tensor("embeddings.word_embeddings.weight", {static_cast<std::int64_t>(vocabulary.size()), width});
  tensor("embeddings.position_embeddings.weight", {context, width});
  tensor("embeddings.token_type_embeddings.weight", {2, width});
  norm("embeddings");
  for (std::int64_t i = 0; i < layers; ++i) {
    for (const char* name : {"query", "key", "value"})
      dense(layer_name(i) + "attention.self." + name, width, width);
    dense(layer_name(i) + "attention.output.dense", width, width);
    dense(layer_name(i) + "intermediate.dense", hidden, width);
    dense(layer_name(i) + "output.dense", width, hidden);
    norm(layer_name(i) + "attention.output");
    norm(layer_name(i) + "output");
  }
}

std::string SmallEncoder::config() const {
  return nlohmann::json({{"model_type", "bert"},
                         {"hidden_act", "gelu"},
                         {"num_hidden_layers", layers},
                         {"hidden_size", width},
                         {"num_attention_heads", heads},
                         {"intermediate_size", hidden},
                         {"vocab_size", vocabulary.size()},
                         {"max_position_embeddings", context},
                         {"type_vocab_size", 2},
                         {"layer_norm_eps", 1e-6F}})
      .dump();
}

std::string SmallEncoder::safetensors(const std::string& prefix) const {
  nlohmann::ordered_json header;
  std::string data;
  for (const auto& [name, numbers] : tensors) {
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
    header[prefix + name] = {{"dtype", "F32"}, {"shape", shapes.at(name)}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data;
}

std::string SmallEncoder::vocabulary_text() const {
  std::string text;
  for (const std::string& word : vocabulary) text += word + "\n";
  return text;
}

void SmallEncoder::write(const std::string& folder, const std::string& prefix) const {
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  };
  write("config.json", config());
  write("model.safetensors", safetensors(prefix));
  write("vocab.txt", vocabulary_text());
}

std::vector<double> SmallEncoder::rows_in_f64(std::span<const Token> tokens) const {
  const auto& t = tensors;
  const auto columns = static_cast<std::size_t>(width);
  Rows x;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::vector<double>& row = x.emplace_back();
    for (std::size_t c = 0; c < columns; ++c) {
      row.push_back(static_cast<double>(t.at(
                        "embeddings.word_embeddings.weight")[static_cast<std::size_t>(tokens[i]) * columns + c]) +
                    t.at("embeddings.position_embeddings.weight")[i * columns + c] +
                    t.at("embeddings.token_type_embeddings.weight")[c]);
    }
  }
  const auto norm = [&](const std::string& name) {
    normalise(t.at(name + ".LayerNorm.weight"), t.at(name + ".LayerNorm.bias"), &x);
  };
  const auto dense = [&](const Rows& from, const std::string& name) {
    return product(from, t.at(name + ".weight"), t.at(name + ".bias"));
  };
  norm("embeddings");
  const std::int64_t n = static_cast<std::int64_t>(tokens.size()), dim = width / heads;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string name = layer_name(layer);
    std::vector<double> memory[3];
    TensorView views[3];
    int part = 0;
    for (const char* which : {"query", "key", "value"}) {
      for (const auto& row : dense(x, name + "attention.self." + which))
        memory[part].insert(memory[part].end(), row.begin(), row.end());
      views[part] = {memory[part].data(), DType::f64, {heads, n, dim}, {dim, width, 1}};
      ++part;
    }
    const reference::Result attended = reference::attention(views[0], views[1], views[2]);
    Rows joined(tokens.size());
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t c = 0; c < dim; ++c)
          joined[static_cast<std::size_t>(i)].push_back(
              attended.out[static_cast<std::size_t>((head * n + i) * dim + c)]);
      }
    }
    add(dense(joined, name + "attention.output.dense"), &x);
    norm(name + "attention.output");
    Rows between = dense(x, name + "intermediate.dense");
    for (auto& row : between) {
      for (double& number : row) number *= 0.5 * std::erfc(-number / std::sqrt(2.0));
    }
    add(dense(between, name + "output.dense"), &x);
    norm(name + "output");
  }
  std::vector<double> result;
  for (const auto& row : x) result.insert(result.end(), row.begin(), row.end());
  return result;
}

}  // namespace attn::model

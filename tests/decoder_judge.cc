#include "decoder_judge.h"

#include <cmath>
#include <string>

#include "reference/reference.h"

namespace attn::model {
namespace {

using Rows = std::vector<std::vector<double>>;

std::vector<double> row_of(const formats::GgufTensor& tensor, std::int64_t row) {
  std::vector<float> numbers(static_cast<std::size_t>(tensor.columns()));
  formats::dequantise_row(tensor, row, numbers.data());
  return {numbers.begin(), numbers.end()};
}

// x·Wᵀ.
Rows product(const Rows& x, const formats::GgufTensor& w) {
  Rows result(x.size(), std::vector<double>(static_cast<std::size_t>(w.rows())));
  for (std::int64_t o = 0; o < w.rows(); ++o) {
    const std::vector<double> weights = row_of(w, o);
    for (std::size_t r = 0; r < x.size(); ++r) {
      double sum = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) sum += x[r][k] * weights[k];
      result[r][static_cast<std::size_t>(o)] = sum;
    }
  }
  return result;
}

Rows normed(const Rows& x, const formats::GgufTensor& w, double epsilon) {
  const std::vector<double> weight = row_of(w, 0);
  Rows result = x;
  for (std::vector<double>& row : result) {
    double squares = 0;
    for (const double number : row) squares += number * number;
    const double length = std::sqrt(squares / static_cast<double>(row.size()) + epsilon);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = row[i] / length * weight[i];
  }
  return result;
}

// base^(−2i / rotary dims), divided by the factor of linear scaling and by Llama 3's divisors.
std::vector<double> frequencies_of(const formats::Gguf& gguf, const DecoderShape& shape) {
  const auto number = [&](const char* key, double otherwise) {
    const auto found = gguf.facts.find(key);
    if (found == gguf.facts.end()) return otherwise;
    const auto* whole = std::get_if<std::int64_t>(&found->second);
    return whole ? static_cast<double>(*whole) : std::get<double>(found->second);
  };
  const double dims = number("llama.rope.dimension_count", static_cast<double>(shape.head_dim));
  const double base = number("llama.rope.freq_base", 10000), factor = number("llama.rope.scaling.factor", 1);
  std::vector<double> frequencies;
  for (double i = 0; i < dims / 2; ++i) frequencies.push_back(std::pow(base, -2 * i / dims) / factor);
  const auto divisors = gguf.tensors.find("rope_freqs.weight");
  if (divisors == gguf.tensors.end()) return frequencies;
  const std::vector<double> by = row_of(divisors->second, 0);
  for (std::size_t i = 0; i < by.size(); ++i) frequencies[i] /= by[i];
  return frequencies;
}

// Each head's adjacent pairs turn by position × frequency.
void rotate(Rows* rows, const DecoderShape& shape, const std::vector<double>& frequencies) {
  for (std::size_t position = 0; position < rows->size(); ++position) {
    std::vector<double>& row = (*rows)[position];
    for (std::size_t head = 0; head < row.size(); head += static_cast<std::size_t>(shape.head_dim)) {
      for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
        const double angle = static_cast<double>(position) * frequencies[pair];
        double &x = row[head + 2 * pair], &y = row[head + 2 * pair + 1];
        const double turned = x * std::cos(angle) - y * std::sin(angle);
        y = x * std::sin(angle) + y * std::cos(angle);
        x = turned;
      }
    }
  }
}

void add(const Rows& more, Rows* rows) {
  for (std::size_t r = 0; r < rows->size(); ++r) {
    for (std::size_t i = 0; i < (*rows)[r].size(); ++i) (*rows)[r][i] += more[r][i];
  }
}

// [heads, N, D] from rows of heads side by side.
TensorView view_of(const Rows& rows, std::int64_t heads, std::int64_t dim, std::vector<double>* memory) {
  memory->clear();
  for (const auto& row : rows) memory->insert(memory->end(), row.begin(), row.end());
  const auto n = static_cast<std::int64_t>(rows.size());
  return {memory->data(), DType::f64, {heads, n, dim}, {dim, heads * dim, 1}};
}

}  // namespace

std::vector<double> logits_in_f64(const formats::Gguf& gguf, const DecoderShape& shape,
                                  std::span<const Token> tokens) {
  const auto tensor = [&](const std::string& name) -> const formats::GgufTensor& { return gguf.tensors.at(name); };
  const std::vector<double> frequencies = frequencies_of(gguf, shape);
  Rows x;
  for (const Token token : tokens) x.push_back(row_of(tensor("token_embd.weight"), token));
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const std::string name = "blk." + std::to_string(layer) + ".";
    const Rows a = normed(x, tensor(name + "attn_norm.weight"), shape.norm_epsilon);
    Rows q = product(a, tensor(name + "attn_q.weight")), k = product(a, tensor(name + "attn_k.weight"));
    const Rows v = product(a, tensor(name + "attn_v.weight"));
    rotate(&q, shape, frequencies);
    rotate(&k, shape, frequencies);
    std::vector<double> q_memory, k_memory, v_memory;
    AttentionOptions options;
    options.causal = true;
    const reference::Result attended = reference::attention(
        view_of(q, shape.heads, shape.head_dim, &q_memory), view_of(k, shape.kv_heads, shape.head_dim, &k_memory),
        view_of(v, shape.kv_heads, shape.head_dim, &v_memory), options);
    Rows heads(x.size());
    for (std::size_t r = 0; r < x.size(); ++r) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        const auto from =
            attended.out.begin() +
            static_cast<std::ptrdiff_t>((h * static_cast<std::int64_t>(x.size()) + static_cast<std::int64_t>(r)) *
                                        shape.head_dim);
        heads[r].insert(heads[r].end(), from, from + shape.head_dim);
      }
    }
    add(product(heads, tensor(name + "attn_output.weight")), &x);

    const Rows f = normed(x, tensor(name + "ffn_norm.weight"), shape.norm_epsilon);
    Rows gate = product(f, tensor(name + "ffn_gate.weight"));
    const Rows up = product(f, tensor(name + "ffn_up.weight"));
    for (std::size_t r = 0; r < gate.size(); ++r) {
      for (std::size_t i = 0; i < gate[r].size(); ++i) gate[r][i] *= up[r][i] / (1 + std::exp(-gate[r][i]));
    }
    add(product(gate, tensor(name + "ffn_down.weight")), &x);
  }
  const bool separate = gguf.tensors.contains("output.weight");
  std::vector<double> logits;
  for (const auto& row : product(normed(x, tensor("output_norm.weight"), shape.norm_epsilon),
                                 tensor(separate ? "output.weight" : "token_embd.weight")))
    logits.insert(logits.end(), row.begin(), row.end());
  return logits;
}

}  // namespace attn::model

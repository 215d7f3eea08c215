#include "model/map_text.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "attn/attention.h"
#include "reference/reference.h"

namespace attn::model {
namespace {

// Rows of a head that are computed in float64: all of a page of text, and of longer ones as many, evenly spaced.
constexpr std::int64_t kRowsJudged = 256;

// Row `row` of every head alone, at its position.
TensorView row_of(const TensorView& q, std::int64_t row) {
  TensorView one = q;
  one.shape[1] = 1;
  one.data = static_cast<const float*>(q.data) + row * q.strides[1];
  return one;
}

// Attends as the whole text does, and keeps weights.
class Recorder final : public LayerAttention {
 public:
  Recorder(const TextModel& model, const MapOptions& options, explain::AttentionMap* map)
      : whole_(model.causal(), &model.executor()), executor_(model.executor()), options_(options), map_(map) {}

  Status attend(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v,
                const OutputView& out) override {
    ATTN_RETURN_IF_ERROR(whole_.attend(layer, q, k, v, out));
    if (!options_.layer || *options_.layer == layer) ATTN_RETURN_IF_ERROR(keep(layer, q, k, v));
    if (options_.layer_done) options_.layer_done();
    return {};
  }
  std::int64_t length() const override { return 0; }
  void take_back(std::int64_t /*position*/) override {}

 private:
  Status keep(std::int64_t layer, const TensorView& q, const TensorView& k, const TensorView& v) {
    AttentionOptions options;
    options.causal = map_->causal;
    options.executor = &executor_;
    const std::int64_t n = map_->size(), table = map_->heads * n * n;
    float* to = map_->weights.data() + static_cast<std::int64_t>(map_->layers.size()) * table;
    map_->layers.push_back(layer);
    ATTN_RETURN_IF_ERROR(weights(q, k, {to, DType::f32, {map_->heads, n, n}}, options));
    judge(q, k, v, options, to);
    return {};
  }

  void judge(const TensorView& q, const TensorView& k, const TensorView& v, AttentionOptions options,
             const float* to) {
    const std::int64_t n = map_->size();
    map_->rows_judged = std::min(n, kRowsJudged);
    if (n <= kRowsJudged) return compare(reference::attention(q, k, v, options, true), to, 0);
    for (std::int64_t i = 0; i < kRowsJudged; ++i) {
      const std::int64_t row = i * (n - 1) / (kRowsJudged - 1);
      options.alignment = Alignment::offset;
      options.position_offset = row;
      compare(reference::attention(row_of(q, row), k, v, options, true), to, row);
    }
  }

  // `expected` has rows from `first` on. A NaN is the largest difference there is.
  void compare(const reference::Result& expected, const float* to, std::int64_t first) {
    const std::int64_t n = map_->size();
    for (std::int64_t head = 0; head < map_->heads; ++head) {
      for (std::int64_t i = 0; i < expected.queries; ++i) {
        const double* row = expected.weights.data() + (head * expected.queries + i) * n;
        const float* ours = to + (head * n + first + i) * n;
        for (std::int64_t j = 0; j < n; ++j) {
          const double difference = std::abs(static_cast<double>(ours[j]) - row[j]);
          if (std::isnan(difference) || difference > map_->fidelity) map_->fidelity = difference;
        }
      }
    }
  }

  WholeText whole_;
  Executor& executor_;
  const MapOptions& options_;
  explain::AttentionMap* map_;
};

Status check(const TextModel& model, std::int64_t tokens, const MapOptions& options) {
  if (options.layer && (*options.layer < 0 || *options.layer >= model.layers())) {
    return Status::error("layer: " + std::to_string(*options.layer) + ", but the model has " +
                         std::to_string(model.layers()) + ", counted from 0");
  }
  if (tokens == 0) return Status::error("text: it has no token; give a text");
  if (tokens > model.context()) {
    return Status::error("text: " + std::to_string(tokens) + " tokens, but the model has " +
                         std::to_string(model.context()) + " positions; give a shorter one");
  }
  const double tables = static_cast<double>(options.layer ? 1 : model.layers());
  const double bytes = tables * static_cast<double>(model.heads()) * static_cast<double>(tokens * tokens) * 4;
  if (bytes > static_cast<double>(options.most_bytes)) {
    return Status::error("text: " + std::to_string(tokens) + " tokens make maps of " +
                         std::to_string(static_cast<std::int64_t>(bytes / 1e6)) + " MB, above the " +
                         std::to_string(options.most_bytes / 1000000) +
                         " that are held at once; choose a layer, or give a shorter text");
  }
  return {};
}

}  // namespace

Status map_tokens(const TextModel& model, std::span<const Token> tokens, const MapOptions& options,
                  explain::AttentionMap* map, std::vector<float>* rows) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  ATTN_RETURN_IF_ERROR(check(model, n, options));
  explain::AttentionMap filled;
  filled.causal = model.causal();
  filled.heads = model.heads();
  for (const Token token : tokens) {
    filled.tokens.push_back(model.tokenizer().label(token));
    filled.special.push_back(token == model.tokenizer().begin() || token == model.tokenizer().end());
  }
  try {
    filled.weights.resize(static_cast<std::size_t>((options.layer ? 1 : model.layers()) * model.heads() * n * n));
  } catch (const std::bad_alloc&) {
    return Status::error("text: not enough memory for its maps; choose a layer, or give a shorter text");
  }
  Recorder recorder(model, options, &filled);
  std::vector<float> last;
  ATTN_RETURN_IF_ERROR(model.run(tokens, recorder, &last));
  if (rows) *rows = std::move(last);
  *map = std::move(filled);
  return {};
}

}  // namespace attn::model

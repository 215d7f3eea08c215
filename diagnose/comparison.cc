#include "diagnose/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "attn/attention.h"

namespace attn::diagnose {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorView view_of(const reference::Array& array) { return {array.values.data(), DType::f64, array.shape}; }

// The indices of the largest numbers, the largest first.
std::vector<std::int64_t> largest_of(const std::vector<double>& numbers, std::size_t most) {
  std::vector<std::int64_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int64_t a, std::int64_t b) {
    const double x = numbers[static_cast<std::size_t>(a)], y = numbers[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

}  // namespace

double difference_of(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::fabs(a - b);
  return std::isnan(difference) ? kInfinity : difference;
}

Status Comparison::make(const reference::Inputs& inputs, const TensorView& theirs, Comparison* comparison) {
  Comparison made;
  made.theirs_ = reference::read(theirs);
  AttentionOptions options = inputs.options;
  reference::Array bias, alibi, sinks;
  const auto in_f64 = [](std::optional<TensorView>* view, reference::Array* memory) {
    if (!*view) return;
    const auto rank = static_cast<std::size_t>((*view)->rank);
    *memory = reference::read(**view);
    TensorView read = view_of(*memory);
    // As many dimensions as before: a list of heads stays one.
    TensorView narrow = read;
    narrow.rank = (*view)->rank;
    for (std::size_t d = 0; d < rank; ++d) {
      narrow.shape[d] = read.shape[4 - rank + d];
      narrow.strides[d] = read.strides[4 - rank + d];
    }
    *view = narrow;
  };
  in_f64(&options.bias, &bias);
  in_f64(&options.alibi, &alibi);
  in_f64(&options.sinks, &sinks);
  options.bf16_products = false;
  made.ours_.assign(made.theirs_.values.size(), 0);
  std::vector<double> sizes(made.ours_.size());
  reference::Array magnitudes = inputs.value;
  for (double& number : magnitudes.values) number = std::fabs(number);
  ATTN_RETURN_IF_ERROR(forward(view_of(inputs.query), view_of(inputs.key), view_of(inputs.value),
                               {made.ours_.data(), DType::f64, made.theirs_.shape}, options));
  ATTN_RETURN_IF_ERROR(forward(view_of(inputs.query), view_of(inputs.key), view_of(magnitudes),
                               {sizes.data(), DType::f64, made.theirs_.shape}, options));
  const std::int64_t columns = made.columns();
  for (std::int64_t row = 0; row < made.rows(); ++row) {
    double largest = 0, ratio = 0;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto at = static_cast<std::size_t>(row * columns + c);
      const double difference = difference_of(made.theirs_.values[at], made.ours_[at]);
      largest = std::fmax(largest, difference);
      if (difference > 0)
        ratio = std::fmax(ratio, std::isfinite(sizes[at]) ? difference / (sizes[at] + 1e-300) : kInfinity);
    }
    made.differences_.push_back(largest);
    made.ratios_.push_back(ratio);
  }
  *comparison = std::move(made);
  return {};
}

const double* Comparison::ours(const RowPlace& place) const {
  const std::int64_t row = (place.batch * theirs_.shape[1] + place.head) * theirs_.shape[2] + place.row;
  return ours_.data() + row * columns();
}

RowPlace Comparison::place_of(std::int64_t row) const {
  const std::int64_t n = theirs_.shape[2], heads = theirs_.shape[1];
  return {row / n / heads, row / n % heads, row % n};
}

std::vector<std::int64_t> Comparison::worst_rows(std::size_t most) const { return largest_of(ratios_, most); }

}  // namespace attn::diagnose

#include "src/run/bias_rows.h"

#include <algorithm>

#include "src/elements.h"

namespace attn {
namespace {

template <class T, class Element>
void copy_contiguous(const std::byte* from, std::int64_t count, T* row) {
  for (std::int64_t j = 0; j < count; ++j) row[j] = static_cast<T>(read_as<Element>(from + j * sizeof(Element)));
}

template <class T>
void load_bias(const View4& bias, const std::byte* from, std::int64_t count, T* row) {
  const std::int64_t step = bias.strides[3] * static_cast<std::int64_t>(size_of(bias.dtype));
  if (step == 0) {
    std::fill_n(row, count, load_element<T>(from, bias.dtype));
  } else if (bias.strides[3] == 1 && bias.dtype == DType::f32) {
    copy_contiguous<T, float>(from, count, row);
  } else {
    for (std::int64_t j = 0; j < count; ++j) row[j] = load_element<T>(from + j * step, bias.dtype);
  }
}

}  // namespace

template <class T>
void fill_bias_row(const Problem& p, const KernelSet<T>& kernels, const BiasPlace& place, std::int64_t count,
                   T* row) {
  if (p.bias.present()) {
    load_bias(p.bias, p.bias.at(place.sequence, place.head, place.query, place.first_key), count, row);
  } else {
    std::fill_n(row, count, T(0));
  }
  if (!p.mask.present()) return;
  const std::byte* allowed = p.mask.at(place.sequence, place.head, place.query, place.first_key);
  if (p.mask.strides[3] == 1)
    return kernels.hide_masked(reinterpret_cast<const std::uint8_t*>(allowed), count, row);
  for (std::int64_t j = 0; j < count; ++j) {
    if (read_as<std::uint8_t>(allowed + j * p.mask.strides[3]) == 0) row[j] = kMinusInfinity<T>;
  }
}

template void fill_bias_row(const Problem&, const KernelSet<float>&, const BiasPlace&, std::int64_t, float*);
template void fill_bias_row(const Problem&, const KernelSet<double>&, const BiasPlace&, std::int64_t, double*);

}  // namespace attn

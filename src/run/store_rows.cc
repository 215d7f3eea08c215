#include "src/run/store_rows.h"

#include <algorithm>
#include <cstring>

#include "src/elements.h"
#include "src/state.h"

namespace attn {
namespace {

// `out` is canonical.
template <class T>
void store_columns(const OutputView4& to, const RowPlace& place, const T* out) {
  std::byte* element = to.at(place.batch, place.head, place.row);
  const std::int64_t columns = to.shape[3];
  if (to.strides[3] == 1 && size_of(to.dtype) == sizeof(T)) {
    std::memcpy(element, out, columns * sizeof(T));
    return;
  }
  const std::int64_t step = to.strides[3] * static_cast<std::int64_t>(size_of(to.dtype));
  for (std::int64_t c = 0; c < columns; ++c) store_element(element + c * step, to.dtype, out[c]);
}

template <class T>
void store_number(const OutputView4& to, const RowPlace& place, T number) {
  store_element(to.at(place.batch, place.head, place.row), to.dtype, number);
}

// max of a row with NaN may or may not be NaN, by target: it is stored as NaN. Otherwise as it is.
template <class T>
void store_state(const Destination& to, const RowPlace& place, T max, T sum, T* out) {
  store_number(to.max, place, sum == sum ? max : sum);
  store_number(to.sum, place, sum);
  for (std::int64_t c = 0; c < to.out.shape[3]; ++c) out[c] = canonical(out[c]);
  store_columns(to.out, place, out);
}

}  // namespace

// Division, not a product with the reciprocal: one rounding less, and a single key returns its value.
template <class T>
void divide_row(T* out, std::int64_t columns, T sum) {
  if (sum == 0) {
    std::fill_n(out, columns, T(0));
  } else {
    for (std::int64_t c = 0; c < columns; ++c) out[c] = canonical(out[c] / sum);
  }
}

template <class T>
void store_row(const View4& sinks, const Destination& to, const RowPlace& place, T max, T sum, T* out,
               DivideRow<T> divide) {
  if (to.wants_state()) return store_state(to, place, max, sum, out);
  const std::int64_t columns = to.out.shape[3];
  if (sinks.present())
    merge_sink(&max, &sum, out, load_element<double>(sinks.at(0, place.head, 0), sinks.dtype), columns);
  divide(out, columns, sum);
  store_columns(to.out, place, out);
  if (to.lse.present()) store_number(to.lse, place, lse_of(max, sum));
}

template <class T>
void store_padding_row(const Destination& to, const RowPlace& place) {
  for (std::int64_t c = 0; c < to.out.shape[3]; ++c) {
    store_element(to.out.at(place.batch, place.head, place.row, c), to.out.dtype, T(0));
  }
  if (to.lse.present()) store_number(to.lse, place, kMinusInfinity<T>);
  if (!to.wants_state()) return;
  store_number(to.max, place, kMinusInfinity<T>);
  store_number(to.sum, place, T(0));
}

template void divide_row(float*, std::int64_t, float);
template void divide_row(double*, std::int64_t, double);
template void store_row(const View4&, const Destination&, const RowPlace&, float, float, float*, DivideRow<float>);
template void store_row(const View4&, const Destination&, const RowPlace&, double, double, double*,
                        DivideRow<double>);
template void store_padding_row<float>(const Destination&, const RowPlace&);
template void store_padding_row<double>(const Destination&, const RowPlace&);

}  // namespace attn

#include "model/matrix.h"

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "attn/dtype.h"
#include "model/tasks.h"

namespace attn::model {
namespace {

// Reading, converting and scattering one weight takes about as long as so many multiply-adds.
constexpr double kPackWork = 30;

float element(const TensorView& tensor, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * tensor.strides[0] + column * tensor.strides[1];
  const auto* bytes =
      static_cast<const unsigned char*>(tensor.data) + at * static_cast<std::int64_t>(size_of(tensor.dtype));
  if (tensor.dtype == DType::f32) return formats::load<float>(bytes);
  const auto half = formats::load<std::uint16_t>(bytes);
  return tensor.dtype == DType::f16 ? f16_to_float(half) : bf16_to_float(half);
}

// Calls read(row, numbers) for the rows of a panel and spreads what it gives as the panel's columns.
template <class Number, class Read>
void pack_numbers(const Matrix& matrix, std::int64_t panel, std::byte* memory, std::vector<float>& numbers,
                  const Read& read) {
  auto* to = reinterpret_cast<Number*>(memory);
  const std::int64_t first = panel * kPanelOutputs, inputs = matrix.inputs();
  for (std::int64_t o = 0; o < std::min(kPanelOutputs, matrix.outputs() - first); ++o) {
    read(first + o, numbers.data());
    for (std::int64_t k = 0; k < inputs; ++k) {
      if constexpr (sizeof(Number) == 2) {
        to[k * kPanelOutputs + o] = float_to_bf16(numbers[static_cast<std::size_t>(k)]);
      } else {
        to[k * kPanelOutputs + o] = numbers[static_cast<std::size_t>(k)];
      }
    }
  }
}

WeightForm form_of(formats::GgufType type) {
  switch (type) {
    case formats::GgufType::f32:
    case formats::GgufType::f16: return WeightForm::f32;
    case formats::GgufType::bf16: return WeightForm::bf16;
    case formats::GgufType::q8_0:
    case formats::GgufType::q6_k: return WeightForm::eight_bits;
    case formats::GgufType::q4_0:
    case formats::GgufType::q4_1:
    case formats::GgufType::q4_k: return WeightForm::four_bits;
  }
  return WeightForm::f32;
}

}  // namespace

// What packing a row needs; a thread has one.
struct Matrix::RowScratch {
  std::vector<float> numbers, steps, leasts;
  std::vector<std::int8_t> codes;
};

std::int64_t Matrix::panel_bytes() const {
  const std::int64_t groups = group_ > 0 ? inputs_ / group_ : 0, steps = groups * kPanelOutputs * 4;
  switch (form_) {
    case WeightForm::f32: return inputs_ * kPanelOutputs * 4;
    case WeightForm::bf16: return inputs_ * kPanelOutputs * 2;
    case WeightForm::eight_bits: return inputs_ * kPanelOutputs + steps;
    case WeightForm::four_bits: return inputs_ * kPanelOutputs / 2 + 2 * steps;
  }
  return 0;
}

Status Matrix::allocate(WeightMemory& memory) {
  memory_ = memory.allocate(bytes());
  if (memory_) return {};
  return Status::error("model: no memory for " + std::to_string(bytes()) + " bytes of weights");
}

// Row by row into its column of the panel.
void Matrix::pack_codes(const formats::GgufTensor& tensor, std::int64_t panel, RowScratch& scratch) {
  const bool four = form_ == WeightForm::four_bits;
  // Q4_0 counts from −8; here codes count from 0, and the least number makes up for it (both exact).
  const int less = tensor.type == formats::GgufType::q4_0 ? 8 : 0;
  const std::int64_t groups = inputs_ / group_, group_bytes = panel_bytes() / groups;
  const std::int64_t codes_at = kPanelOutputs * 4 * (four ? 2 : 1);
  const std::int64_t first = panel * kPanelOutputs;
  for (std::int64_t o = 0; o < std::min(kPanelOutputs, outputs_ - first); ++o) {
    formats::read_codes(tensor, first + o, scratch.codes.data(), scratch.steps.data(), scratch.leasts.data());
    const std::int8_t* code = scratch.codes.data();
    for (std::size_t g = 0; g < static_cast<std::size_t>(groups); ++g) {
      std::byte* to = writable_panel(panel) + static_cast<std::int64_t>(g) * group_bytes;
      reinterpret_cast<float*>(to)[o] = scratch.steps[g];
      if (four) reinterpret_cast<float*>(to)[kPanelOutputs + o] = less ? -8 * scratch.steps[g] : scratch.leasts[g];
      to += codes_at + o;
      for (std::int64_t k = 0; k < group_; ++k) {
        const auto bits = static_cast<std::byte>(*code++ + less);
        if (!four) {
          to[k * kPanelOutputs] = bits;
        } else {
          to[k / 2 * kPanelOutputs] |= k % 2 ? bits << 4 : bits;
        }
      }
    }
  }
}

template <class PackPanel>
Status Matrix::pack_panels(Executor& executor, const PackPanel& pack_panel) {
  // Before the tasks, which may not throw.
  std::vector<RowScratch> scratch;
  try {
    scratch.resize(static_cast<std::size_t>(executor.threads()));
    const auto inputs = static_cast<std::size_t>(inputs_), groups = inputs / static_cast<std::size_t>(group_);
    for (RowScratch& row : scratch) {
      row.numbers.resize(inputs);
      row.codes.resize(inputs);
      row.steps.resize(groups);
      row.leasts.resize(groups);
    }
  } catch (const std::bad_alloc&) {
    return Status::error("model: not enough memory to pack weights of " + std::to_string(inputs_) + " inputs");
  }
  const double work = kPackWork * static_cast<double>(outputs_ * inputs_);
  for_each(executor, panels(), work,
           [&](std::int64_t panel, int worker) { pack_panel(panel, scratch[static_cast<std::size_t>(worker)]); });
  return {};
}

Status Matrix::pack(const formats::GgufTensor& tensor, WeightMemory& memory, Executor& executor, Matrix* matrix) {
  Matrix packed;
  packed.outputs_ = tensor.rows();
  packed.inputs_ = tensor.columns();
  packed.form_ = form_of(tensor.type);
  const std::int64_t group = formats::group_of(tensor.type);
  packed.group_ = group > 0 ? group : packed.inputs_;
  ATTN_RETURN_IF_ERROR(packed.allocate(memory));
  const auto read = [&](std::int64_t row, float* numbers) { formats::dequantise_row(tensor, row, numbers); };
  ATTN_RETURN_IF_ERROR(packed.pack_panels(executor, [&](std::int64_t panel, RowScratch& scratch) {
    std::byte* to = packed.writable_panel(panel);
    if (group > 0) {
      packed.pack_codes(tensor, panel, scratch);
    } else if (packed.form_ == WeightForm::bf16) {
      pack_numbers<std::uint16_t>(packed, panel, to, scratch.numbers, read);
    } else {
      pack_numbers<float>(packed, panel, to, scratch.numbers, read);
    }
  }));
  *matrix = packed;
  return {};
}

Status Matrix::pack(const TensorView& tensor, WeightMemory& memory, Executor& executor, Matrix* matrix) {
  Matrix packed;
  packed.outputs_ = tensor.shape[0];
  packed.inputs_ = packed.group_ = tensor.shape[1];
  ATTN_RETURN_IF_ERROR(packed.allocate(memory));
  const auto read = [&](std::int64_t row, float* numbers) {
    for (std::int64_t k = 0; k < packed.inputs_; ++k) numbers[k] = element(tensor, row, k);
  };
  ATTN_RETURN_IF_ERROR(packed.pack_panels(executor, [&](std::int64_t panel, RowScratch& scratch) {
    pack_numbers<float>(packed, panel, packed.writable_panel(panel), scratch.numbers, read);
  }));
  *matrix = packed;
  return {};
}

}  // namespace attn::model

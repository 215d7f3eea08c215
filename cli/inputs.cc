// The tensors that a verb is given on the command line.
#include "cli/inputs.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <vector>

#include "cli/verbs.h"
#include "formats/read.h"
#include "formats/tensor.h"

namespace attn::cli {
namespace {

void require_of(const std::string& flag, const Status& status) {
  if (!status.ok()) throw Failure{2, flag + ": " + status.message()};
}

// FILE of FILE:NAME, where FILE may hold a colon itself: the longest part that exists.
std::string file_of(const std::string& argument) {
  std::size_t end = argument.size();
  std::error_code ignored;
  while (end != std::string::npos && !std::filesystem::exists(argument.substr(0, end), ignored)) {
    end = end == 0 ? std::string::npos : argument.rfind(':', end - 1);
  }
  return argument.substr(0, end);
}

template <class Stored>
Stored load(const void* address) {
  Stored value;
  std::memcpy(&value, address, sizeof(value));  // files align nothing
  return value;
}

double read_number(const TensorView& view, std::int64_t index) {
  const auto* address =
      static_cast<const unsigned char*>(view.data) + index * static_cast<std::int64_t>(size_of(view.dtype));
  switch (view.dtype) {
    case DType::f32: return load<float>(address);
    case DType::f64: return load<double>(address);
    case DType::f16: return f16_to_float(load<std::uint16_t>(address));
    case DType::bf16: return bf16_to_float(load<std::uint16_t>(address));
    case DType::boolean: return load<unsigned char>(address) != 0;
  }
  return 0;
}

// Every element in row-major order; dimensions in front that the view lacks have size 1.
template <class Number>
std::shared_ptr<std::vector<Number>> gathered(const TensorView& view) {
  std::int64_t count = 1;
  for (int d = 0; d < view.rank; ++d) count *= view.shape[d];
  auto numbers = std::make_shared<std::vector<Number>>();
  numbers->reserve(static_cast<std::size_t>(count));

  std::array<std::int64_t, kMaxRank> index{};
  for (std::int64_t taken = 0; taken < count; ++taken) {
    std::int64_t element = 0;
    for (int d = 0; d < view.rank; ++d) element += index[d] * view.strides[d];
    numbers->push_back(static_cast<Number>(read_number(view, element)));
    for (int d = view.rank - 1; d >= 0 && ++index[d] == view.shape[d]; --d) index[d] = 0;
  }
  return numbers;
}

template <class Number>
Input copied(const Input& input, DType dtype) {
  const auto numbers = gathered<Number>(input.view);
  const std::span<const std::int64_t> shape(input.view.shape.data(), static_cast<std::size_t>(input.view.rank));
  return Input{TensorView(numbers->data(), dtype, shape), input.file, numbers};
}

}  // namespace

Input read_input(const std::string& flag, const std::string& argument) {
  formats::Tensor tensor;
  Input input;
  require_of(flag, formats::read_tensor(argument, &tensor));
  require_of(flag, formats::view_of(tensor, &input.view));
  input.file = file_of(argument);
  input.owner = tensor.owner;
  return input;
}

Input read_attention_input(const std::string& flag, const std::string& argument) {
  if (argument.empty()) throw Failure{2, flag + ": not given; name a tensor file, as in " + flag + " FILE.npy"};
  Input input = read_input(flag, argument);
  if (!is_float(input.view.dtype)) {
    throw Failure{2, flag + ": " + argument + " holds bool; give f32, f64, f16 or bf16"};
  }
  if (input.view.rank < 2) {
    throw Failure{2, flag + ": " + argument + " has rank " + std::to_string(input.view.rank) +
                         "; give [N, D], [H, N, D] or [B, H, N, D]"};
  }
  return input;
}

Input converted(const Input& input, DType dtype) {
  if (input.view.dtype == dtype) return input;
  return dtype == DType::f64 ? copied<double>(input, dtype) : copied<float>(input, dtype);
}

}  // namespace attn::cli

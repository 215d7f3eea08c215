// The tensors that a verb is given on the command line.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "attn/tensor.h"

namespace attn::cli {

/// A tensor argument, read. Copies share the memory.
struct Input {
  TensorView view;
  std::string file;                   ///< the file it came from, without the tensor's name
  std::shared_ptr<const void> owner;  ///< keeps the mapping, or the converted copy, alive
};

/// Reads FILE or FILE:NAME. Throws Failure{2} that begins with the flag.
Input read_input(const std::string& flag, const std::string& argument);

/// As read_input, and the tensor must be one that attends: two to four dimensions of floating-point numbers.
Input read_attention_input(const std::string& flag, const std::string& argument);

/// The same numbers as `dtype`, f32 or f64: a row-major copy, rounded to nearest where it must be. An input that
/// has this dtype already is handed back as it is.
Input converted(const Input& input, DType dtype);

/// A view [B, N, H, D] seen as [B, H, N, D], or the other way round; nothing is copied.
template <class Pointer>
BasicTensorView<Pointer> with_heads_and_rows_swapped(BasicTensorView<Pointer> view) {
  std::swap(view.shape[1], view.shape[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

}  // namespace attn::cli

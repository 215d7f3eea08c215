// One conformance case of the ONNX operator Attention, read from its folder and said in the library's terms.
//
// A folder holds case.json (operator, attributes, inputs, outputs) and an .npy file a tensor.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attn/options.h"
#include "engine_tensor.h"
#include "formats/tensor.h"

namespace attn::tests {

struct OnnxCase {
  std::string name, operation;
  nlohmann::json attributes;
  std::map<std::string, formats::Tensor> inputs, outputs;

  bool has(const std::string& input) const { return inputs.count(input) != 0; }
};

/// Reads the folder. Errors: a file that is missing or wrong; a tensor whose shape is not what case.json says.
Status read_case(const std::string& folder, OnnxCase* result);

/// An Attention case as a call: tensors of four dimensions, ready for forward().
struct OnnxAttention {
  Tensor q, k, v;  ///< [B, heads, rows, columns]; k and v are past and new ones together
  std::optional<Tensor> mask, bias;
  std::vector<std::int64_t> key_lengths, position_offsets;
  AttentionOptions plain;
  int scores_mode = 0;  ///< what qk_matmul_output holds

  AttentionOptions options() const;
};

/// Says the case in the library's terms. Errors: an input or attribute that is not known here, so that no case
/// passes without its meaning.
Status understand(const OnnxCase& onnx, OnnxAttention* result);

/// The tensor in a Tensor of ours, 3-D ones [B, rows, heads · columns] as [B, heads, rows, columns].
Tensor in_heads(const formats::Tensor& tensor, std::int64_t heads);

}  // namespace attn::tests

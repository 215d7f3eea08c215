#include "onnx_case.h"

#include <fstream>
#include <limits>
#include <set>

#include "formats/read.h"

namespace attn::tests {
namespace {

using Shape = std::vector<std::int64_t>;

Status read_tensors(const std::string& folder, const nlohmann::json& list,
                    std::map<std::string, formats::Tensor>* to) {
  for (const auto& [name, entry] : list.items()) {
    formats::Tensor tensor;
    ATTN_RETURN_IF_ERROR(formats::read_tensor(folder + "/" + entry.at("file").get<std::string>(), &tensor));
    if (tensor.shape != entry.at("shape").get<Shape>()) {
      return Status::error(folder + ": " + name + " has shape " + formats::shape_text(tensor.shape));
    }
    (*to)[name] = tensor;
  }
  return {};
}

// Every element, row-major; `view` has up to four dimensions.
Tensor copy(const TensorView& view) {
  Tensor to(view.dtype, Shape(view.shape.begin(), view.shape.begin() + view.rank));
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  for (std::int64_t i = 0; i < to.size(); ++i) {
    std::int64_t rest = i, offset = 0;
    for (int d = view.rank - 1; d >= 0; --d) {
      offset += rest % view.shape[d] * view.strides[d];
      rest /= view.shape[d];
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(view.data) + offset * bytes, bytes);
    to.set_bits(i, bits);
  }
  return to;
}

Tensor copy(const formats::Tensor& tensor) {
  TensorView view;
  return formats::view_of(tensor, &view).ok() ? copy(view) : Tensor();
}

// Along dimension 2.
Tensor joined(const Tensor& past, const Tensor& next) {
  Shape shape = past.shape();
  shape[2] += next.shape()[2];
  Tensor all(past.dtype(), shape);
  for (std::int64_t i = 0; i < all.size(); ++i) {
    const std::int64_t column = i % shape[3], row = i / shape[3] % shape[2],
                       head = i / shape[3] / shape[2] % shape[1], batch = i / shape[3] / shape[2] / shape[1];
    const bool old = row < past.shape()[2];
    const Tensor& from = old ? past : next;
    all.set_bits(i, from.bits(from.index({batch, head, old ? row : row - past.shape()[2], column})));
  }
  return all;
}

// A mask for fewer keys than there are hides the rest.
Tensor padded(const Tensor& mask, std::int64_t keys) {
  Shape shape = mask.shape();
  const std::int64_t given = shape.back();
  if (given == keys || given == 1) return mask;
  shape.back() = keys;
  Tensor all(mask.dtype(), shape);
  for (std::int64_t i = 0; i < all.size(); ++i) {
    if (i % keys < given) {
      all.set_bits(i, mask.bits(i / keys * given + i % keys));
    } else {
      all.set(i, mask.dtype() == DType::boolean ? 0 : -std::numeric_limits<double>::infinity());
    }
  }
  return all;
}

Status refuse_unknown(const OnnxCase& onnx) {
  static const std::set<std::string> kInputs{
      "Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"};
  static const std::set<std::string> kOutputs{"Y", "present_key", "present_value", "qk_matmul_output"};
  static const std::set<std::string> kAttributes{
      "is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap"};
  for (const auto& [name, tensor] : onnx.inputs) {
    if (kInputs.count(name) == 0) return Status::error("input " + name + " is not known to this test");
  }
  for (const auto& [name, tensor] : onnx.outputs) {
    if (kOutputs.count(name) == 0) return Status::error("output " + name + " is not known to this test");
  }
  for (const auto& [name, value] : onnx.attributes.items()) {
    if (kAttributes.count(name) == 0) return Status::error("attribute " + name + " is not known to this test");
  }
  return {};
}

}  // namespace

Status read_case(const std::string& folder, OnnxCase* result) {
  std::ifstream file(folder + "/case.json");
  const nlohmann::json description = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (description.is_discarded()) return Status::error(folder + "/case.json: missing, or no JSON");
  result->name = description.at("name");
  result->operation = description.at("operator");
  result->attributes = description.at("attributes");
  ATTN_RETURN_IF_ERROR(read_tensors(folder, description.at("inputs"), &result->inputs));
  return read_tensors(folder, description.at("outputs"), &result->outputs);
}

Tensor in_heads(const formats::Tensor& tensor, std::int64_t heads) {
  TensorView view;
  if (!formats::view_of(tensor, &view).ok()) return {};
  if (view.rank != 3) return copy(view);
  const std::int64_t columns = view.shape[2] / heads;
  return copy(TensorView(view.data, view.dtype, {view.shape[0], heads, view.shape[1], columns},
                         {view.strides[0], columns * view.strides[2], view.strides[1], view.strides[2]}));
}

AttentionOptions OnnxAttention::options() const {
  AttentionOptions all = plain;
  if (mask) all.mask = mask->view();
  if (bias) all.bias = bias->view();
  all.key_lengths = key_lengths;
  all.position_offsets = position_offsets;
  return all;
}

Status understand(const OnnxCase& onnx, OnnxAttention* result) {
  ATTN_RETURN_IF_ERROR(refuse_unknown(onnx));
  const auto& attributes = onnx.attributes;
  OnnxAttention& a = *result;
  a.q = in_heads(onnx.inputs.at("Q"), attributes.value("q_num_heads", 1));
  a.k = in_heads(onnx.inputs.at("K"), attributes.value("kv_num_heads", 1));
  a.v = in_heads(onnx.inputs.at("V"), attributes.value("kv_num_heads", 1));
  std::int64_t past = 0;
  if (onnx.has("past_key")) {
    past = onnx.inputs.at("past_key").shape[2];
    a.k = joined(copy(onnx.inputs.at("past_key")), a.k);
    a.v = joined(copy(onnx.inputs.at("past_value")), a.v);
  }
  if (onnx.has("attn_mask")) {
    const Tensor mask = padded(copy(onnx.inputs.at("attn_mask")), a.k.shape()[2]);
    (mask.dtype() == DType::boolean ? a.mask : a.bias) = mask;
  }
  a.plain.causal = attributes.value("is_causal", 0) != 0;
  a.plain.alignment = Alignment::offset;
  a.plain.position_offset = past;
  if (onnx.has("nonpad_kv_seqlen")) {
    ATTN_RETURN_IF_ERROR(formats::integers_of(onnx.inputs.at("nonpad_kv_seqlen"), &a.key_lengths));
    for (const std::int64_t length : a.key_lengths) a.position_offsets.push_back(length - a.q.shape()[2]);
  }
  if (attributes.contains("scale")) a.plain.scale = attributes.at("scale").get<double>();
  if (attributes.value("softcap", 0.0) != 0) a.plain.softcap = attributes.at("softcap").get<double>();
  a.scores_mode = attributes.value("qk_matmul_output_mode", 0);
  return {};
}

}  // namespace attn::tests

// Weights, packed once for the products that read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/executor.h"
#include "attn/status.h"
#include "attn/tensor.h"
#include "formats/gguf.h"
#include "model/weight_memory.h"

namespace attn::model {

/// Outputs that lie side by side in a panel: a product's lanes go across them.
inline constexpr std::int64_t kPanelOutputs = 64;

/// How the numbers of a panel lie. What a file holds in four or eight bits stays so: decoding reads every weight once a
/// token, and takes as long as that.
enum class WeightForm : std::uint8_t {
  f32,         ///< [inputs][64]
  bf16,        ///< [inputs][64]
  eight_bits,  ///< a group of inputs after the other: f32 steps [64], then int8 codes [group][64]
  four_bits,  ///< the same: steps [64], least numbers [64], then codes of two inputs a byte [group / 2][64], the even one in
              ///< the lower half
};

/// The matrix W of y = x·Wᵀ: outputs × inputs. Outputs are filled up with zeros to whole panels. A view of memory that
/// somebody else keeps.
class Matrix {
 public:
  Matrix() = default;

  /// From a GGUF tensor [outputs, inputs]: F32 and F16 become f32, BF16 stays, types in blocks keep their codes; each weight
  /// is exactly what formats::dequantise_row gives. Errors: memory that can't be had.
  static Status pack(const formats::GgufTensor& tensor, WeightMemory& memory, Executor& executor, Matrix* matrix);

  /// From f32, f16 or bf16 [outputs, inputs], any strides, as f32. Errors: memory that can't be had.
  static Status pack(const TensorView& tensor, WeightMemory& memory, Executor& executor, Matrix* matrix);

  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  WeightForm form() const { return form_; }
  /// Inputs whose weights share a step; all of them where there are no codes.
  std::int64_t group() const { return group_; }
  std::int64_t panels() const { return (outputs_ + kPanelOutputs - 1) / kPanelOutputs; }
  std::int64_t panel_bytes() const;
  std::int64_t bytes() const { return panels() * panel_bytes(); }
  const std::byte* panel(std::int64_t p) const { return memory_ + p * panel_bytes(); }

 private:
  Status allocate(WeightMemory& memory);
  std::byte* writable_panel(std::int64_t p) { return memory_ + p * panel_bytes(); }
  struct RowScratch;
  template <class PackPanel>
  Status pack_panels(Executor& executor, const PackPanel& pack_panel);
  void pack_codes(const formats::GgufTensor& tensor, std::int64_t panel, RowScratch& scratch);

  std::int64_t outputs_ = 0, inputs_ = 0, group_ = 0;
  WeightForm form_ = WeightForm::f32;
  std::byte* memory_ = nullptr;
};

}  // namespace attn::model

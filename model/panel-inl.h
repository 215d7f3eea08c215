// How each form of a panel is read: vectors of weights, input after input.

#if defined(ATTN_MODEL_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTN_MODEL_PANEL_INL_H_
#undef ATTN_MODEL_PANEL_INL_H_
#else
#define ATTN_MODEL_PANEL_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "model/matrix.h"

HWY_BEFORE_NAMESPACE();
namespace attn::model::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, which every target's vectors divide.
using F32 = hn::CappedTag<float, 16>;
inline constexpr int kLanes = static_cast<int>(HWY_MIN(HWY_LANES(float), 16));

/// Asks for what will be read in a while: memory that streams in arrives later than hardware alone would ask for it.
HWY_INLINE void PrefetchAhead(const void* at) {
  constexpr std::uintptr_t kAhead = 2048;
  hwy::Prefetch(reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(at) + kAhead));
}

// A reader walks the inputs of `kVectors` vectors of outputs, from output `first` on. For each group of inputs BeginGroup
// loads what its weights share, and for each kInputsTogether of them Load gives the weights and goes on.

struct PlainPanel {
  static constexpr int kInputsTogether = 1;
  const float* at;

  PlainPanel(const Matrix& matrix, std::int64_t panel, int first)
      : at(reinterpret_cast<const float*>(matrix.panel(panel)) + first) {}

  template <int kVectors>
  HWY_INLINE void BeginGroup(hn::Vec<F32> (&)[kVectors], hn::Vec<F32> (&)[kVectors]) {}

  template <int kVectors>
  HWY_INLINE void Load(const hn::Vec<F32> (&)[kVectors], const hn::Vec<F32> (&)[kVectors],
                       hn::Vec<F32> (&weights)[1][kVectors]) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) weights[0][v] = hn::LoadU(F32(), at + v * kLanes);
    PrefetchAhead(at);
    at += kPanelOutputs;
  }
};

struct Bf16Panel {
  static constexpr int kInputsTogether = 1;
  const std::uint16_t* at;

  Bf16Panel(const Matrix& matrix, std::int64_t panel, int first)
      : at(reinterpret_cast<const std::uint16_t*>(matrix.panel(panel)) + first) {}

  template <int kVectors>
  HWY_INLINE void BeginGroup(hn::Vec<F32> (&)[kVectors], hn::Vec<F32> (&)[kVectors]) {}

  template <int kVectors>
  HWY_INLINE void Load(const hn::Vec<F32> (&)[kVectors], const hn::Vec<F32> (&)[kVectors],
                       hn::Vec<F32> (&weights)[1][kVectors]) {
    const F32 d;
    const hn::RebindToUnsigned<F32> bits;
    const hn::Rebind<std::uint16_t, F32> halves;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto upper = hn::PromoteTo(bits, hn::LoadU(halves, at + v * kLanes));
      weights[0][v] = hn::BitCast(d, hn::ShiftLeft<16>(upper));
    }
    PrefetchAhead(at);
    at += kPanelOutputs;
  }
};

struct EightBitPanel {
  static constexpr int kInputsTogether = 1;
  const std::byte* group;
  std::int64_t group_bytes;
  int first;
  const std::int8_t* at = nullptr;

  EightBitPanel(const Matrix& matrix, std::int64_t panel, int first)
      : group(matrix.panel(panel)),
        group_bytes(matrix.panel_bytes() / (matrix.inputs() / matrix.group())),
        first(first) {}

  template <int kVectors>
  HWY_INLINE void BeginGroup(hn::Vec<F32> (&steps)[kVectors], hn::Vec<F32> (&)[kVectors]) {
    const auto* numbers = reinterpret_cast<const float*>(group) + first;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) steps[v] = hn::LoadU(F32(), numbers + v * kLanes);
    at = reinterpret_cast<const std::int8_t*>(group + kPanelOutputs * 4) + first;
    group += group_bytes;
  }

  template <int kVectors>
  HWY_INLINE void Load(const hn::Vec<F32> (&steps)[kVectors], const hn::Vec<F32> (&)[kVectors],
                       hn::Vec<F32> (&weights)[1][kVectors]) {
    const F32 d;
    const hn::Rebind<std::int32_t, F32> integers;
    const hn::Rebind<std::int8_t, F32> bytes;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto codes = hn::PromoteTo(integers, hn::LoadU(bytes, at + v * kLanes));
      weights[0][v] = hn::Mul(steps[v], hn::ConvertTo(d, codes));
    }
    PrefetchAhead(at);
    at += kPanelOutputs;
  }
};

struct FourBitPanel {
  static constexpr int kInputsTogether = 2;
  const std::byte* group;
  std::int64_t group_bytes;
  int first;
  const std::uint8_t* at = nullptr;

  FourBitPanel(const Matrix& matrix, std::int64_t panel, int first)
      : group(matrix.panel(panel)),
        group_bytes(matrix.panel_bytes() / (matrix.inputs() / matrix.group())),
        first(first) {}

  template <int kVectors>
  HWY_INLINE void BeginGroup(hn::Vec<F32> (&steps)[kVectors], hn::Vec<F32> (&leasts)[kVectors]) {
    const auto* numbers = reinterpret_cast<const float*>(group) + first;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      steps[v] = hn::LoadU(F32(), numbers + v * kLanes);
      leasts[v] = hn::LoadU(F32(), numbers + kPanelOutputs + v * kLanes);
    }
    at = reinterpret_cast<const std::uint8_t*>(group + kPanelOutputs * 8) + first;
    group += group_bytes;
  }

  template <int kVectors>
  HWY_INLINE void Load(const hn::Vec<F32> (&steps)[kVectors], const hn::Vec<F32> (&leasts)[kVectors],
                       hn::Vec<F32> (&weights)[2][kVectors]) {
    const F32 d;
    const hn::Rebind<std::int32_t, F32> integers;
    const hn::Rebind<std::uint8_t, F32> bytes;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto codes = hn::PromoteTo(integers, hn::LoadU(bytes, at + v * kLanes));
      const auto even = hn::ConvertTo(d, hn::And(codes, hn::Set(integers, 15)));
      const auto odd = hn::ConvertTo(d, hn::ShiftRight<4>(codes));
      // The products are exact, so fusing rounds as often as not.
      weights[0][v] = hn::MulAdd(steps[v], even, leasts[v]);
      weights[1][v] = hn::MulAdd(steps[v], odd, leasts[v]);
    }
    PrefetchAhead(at);
    at += kPanelOutputs;
  }
};

}  // namespace attn::model::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

// Which SIMD target runs.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/export.h"
#include "attn/status.h"

namespace ATTN_EXPORT attn {

/// The targets that the kernels are compiled for. All but sse4, which has no fused multiply-add, give the
/// same bits.
enum class Isa : std::uint8_t {
  scalar,  ///< the specification of the arithmetic, in plain C++: slow, and what the others must equal
  sse4,
  avx2,
  avx512,
  neon,
};

/// "scalar", "sse4", "avx2", "avx512" or "neon".
const char* name_of(Isa isa);

/// What this binary holds and this machine can run, slowest first; scalar is always there.
std::vector<Isa> available_isas();

/// What runs now: the best available one, unless forced by force_isa or by the environment variable
/// ATTN_ISA (ignored where it names none of available_isas()).
Isa current_isa();

/// From now on run `isa`, in all threads. An error where it is not available. For tests and measurements:
/// not while another thread is inside a call.
Status force_isa(Isa isa);

/// AttentionOptions::bf16_products works with the current target on this machine.
bool bf16_products_available();

}  // namespace attn

#include "attn/isa.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "src/kernels/kernels.h"
#include "src/sentence.h"

namespace attn {
namespace {

constexpr Isa kAll[] = {Isa::scalar, Isa::sse4, Isa::avx2, Isa::avx512, Isa::neon};

bool available(Isa isa) { return isa == Isa::scalar || kernels_for(isa) != nullptr; }

// ATTN_ISA where it names an available target, otherwise the best one.
Isa first_choice() {
  const char* wish = std::getenv("ATTN_ISA");
  Isa best = Isa::scalar;
  for (Isa isa : kAll) {
    if (!available(isa)) continue;
    if (wish && std::string_view(wish) == name_of(isa)) return isa;
    best = isa;
  }
  return best;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> isa{first_choice()};
  return isa;
}

}  // namespace

const char* name_of(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::sse4: return "sse4";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::neon: return "neon";
  }
  return "unknown";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kAll) {
    if (available(isa)) isas.push_back(isa);
  }
  return isas;
}

Isa current_isa() { return current().load(std::memory_order_relaxed); }

Status force_isa(Isa isa) {
  if (!available(isa)) {
    return error("isa: ", name_of(isa),
                 " cannot run here; available_isas() lists what this machine and binary have");
  }
  current().store(isa, std::memory_order_relaxed);
  return {};
}

bool bf16_products_available() {
  const Kernels* kernels = kernels_for(current_isa());
  return kernels && kernels->has_bf16;
}

}  // namespace attn

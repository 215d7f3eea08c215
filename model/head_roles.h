// What heads do on texts made to show it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/text_model.h"

namespace attn::model {

/// How much a head acts in each of the known roles: weights, on average, from 0 to 1.
struct HeadRoles {
  std::int64_t layer = 0, head = 0;
  /// On random tokens that are repeated once, of each token in the repeat:
  double previous = 0;   ///< the token before it (Elhage et al., 2021)
  double duplicate = 0;  ///< the same token, the first time (Wang et al., 2022)
  double induction =
      0;             ///< the token after that one, which is what will follow (prefix matching: Olsson et al., 2022)
  double first = 0;  ///< the first token of all: an attention sink (Xiao et al., 2023)
  /// On the text, of each token from the third on:
  double text_previous = 0, text_first = 0;
};

struct RoleOptions {
  std::int64_t length = 48;    ///< random tokens, before they are repeated
  std::int64_t sequences = 4;  ///< that are averaged
  std::uint64_t seed = 0;
  std::function<void()> layer_done = nullptr;  ///< after each layer of each sequence and of the text
};

/// Layer by layer, head by head. Random tokens are ordinary ones of the vocabulary, each sequence's different from each other,
/// behind the begin token where the model has one. Errors: as map_tokens(); too small a vocabulary.
Status measure_roles(const TextModel& model, std::span<const Token> text, const RoleOptions& options,
                     std::vector<HeadRoles>* roles);

}  // namespace attn::model

// The sizes of a Llama-type decoder, from the facts of its file.
#pragma once

#include "formats/gguf.h"
#include "model/decoder.h"

namespace attn::model {

/// Errors: another architecture; facts that are missing, out of range, contradict each other, or ask for what is not built
/// (experts, scalings of positions other than linear).
Status read_decoder_shape(const formats::Gguf& gguf, DecoderShape* shape);

}  // namespace attn::model

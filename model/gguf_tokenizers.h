// The kinds of tokenizers that GGUF files describe.
#pragma once

#include <memory>

#include "attn/status.h"
#include "formats/gguf.h"
#include "model/tokenizer.h"
#include "model/vocabulary.h"

namespace attn::model {

Status read_piece_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer);
Status read_byte_tokenizer(const formats::Gguf& gguf, std::unique_ptr<Tokenizer>* tokenizer);

}  // namespace attn::model

// BERT's tokenizer: words, cut into the longest pieces of a vocabulary.
#pragma once

#include <memory>
#include <string>

#include "attn/status.h"
#include "model/tokenizer.h"

namespace attn::model {

/// From a folder's vocab.txt (a token a line) and, where it is there, tokenizer_config.json (do_lower_case, strip_accents,
/// tokenize_chinese_chars). encode() puts [CLS] in front and [SEP] behind. Errors: files that can't be read; a vocabulary
/// without [UNK], [CLS] or [SEP].
Status read_word_pieces(const std::string& folder, std::unique_ptr<Tokenizer>* tokenizer);

}  // namespace attn::model

// Models by path or by name.
#pragma once

#include <string>

#include "model/text_model.h"

namespace attn::cli {

/// The file or folder of `--model`: a path, or "smollm2" or "minilm", which scripts/get-model has put into the user's cache
/// folder. Throws Failure{2} that says how to get it where it is missing.
std::string model_path(const std::string& model);

/// "model.gguf, 30 layers of 9 heads"
std::string model_name(const std::string& path, const model::TextModel& model);

}  // namespace attn::cli

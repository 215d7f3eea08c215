// Models by path or by name.
#pragma once

#include <string>

namespace attn::cli {

/// The file or folder of `--model`: a path, or "smollm2" or "minilm", which scripts/get-model has put into the user's cache
/// folder. Throws Failure{2} that says how to get it where it is missing.
std::string model_path(const std::string& model);

}  // namespace attn::cli

#include "cli/models.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "cli/numbers.h"
#include "cli/usage.h"
#include "cli/verbs.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

// What scripts/get-model brings, and where in the cache folder it lies.
struct NamedModel {
  std::string_view name, place;
};
constexpr std::array<NamedModel, 2> kNamedModels = {
    {{"smollm2", "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}, {"minilm", "minilm"}}};

// As the XDG base directory specification has it.
fs::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return fs::path(cache) / "attn" / "models";
  const char* home = std::getenv("HOME");
  return fs::path(home ? home : "/") / ".cache" / "attn" / "models";
}

}  // namespace

std::string model_path(const std::string& model) {
  if (model.empty())
    throw Failure{2,
                  "--model: not given; give a .gguf file, a folder with model.safetensors, or smollm2 or minilm"};
  std::error_code none;
  for (const NamedModel& named : kNamedModels) {
    if (model != named.name || fs::exists(model, none)) continue;
    const fs::path place = cache_folder() / named.place;
    if (fs::exists(place, none)) return place.string();
    throw Failure{2, "--model: " + model + " is not here yet; run scripts/get-model " + model +
                         ", which puts it at " + place.string()};
  }
  if (!fs::exists(model, none)) {
    throw Failure{2, "--model: there is no file or folder \"" + model +
                         "\"; give a path, or one of the names smollm2 and minilm"};
  }
  return model;
}

std::string model_name(const std::string& path, const model::TextModel& model) {
  return one_line(fs::path(path).filename().string()) + ", " + counted(model.layers(), "layer") + " of " +
         counted(model.heads(), "head");
}

}  // namespace attn::cli

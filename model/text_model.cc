#include "model/text_model.h"

#include <filesystem>

#include "model/decoder.h"
#include "model/encoder.h"

namespace attn::model {

Status load_model(const std::string& path, Executor& executor, std::unique_ptr<TextModel>* model) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    std::unique_ptr<Encoder> encoder;
    ATTN_RETURN_IF_ERROR(Encoder::load(path, executor, &encoder));
    *model = std::move(encoder);
    return {};
  }
  formats::Gguf gguf;
  ATTN_RETURN_IF_ERROR(formats::read_gguf(path, &gguf));
  std::unique_ptr<Decoder> decoder;
  ATTN_RETURN_IF_ERROR(Decoder::load(std::move(gguf), executor, &decoder));
  *model = std::move(decoder);
  return {};
}

}  // namespace attn::model

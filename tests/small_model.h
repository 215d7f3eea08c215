// Small random models as GGUF files.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "formats/gguf.h"

namespace attn::model {

/// A GGUF file in the making.
class GgufWriter {
 public:
  void fact(const std::string& key, const std::string& value);
  void fact(const std::string& key, std::uint32_t value);
  void fact(const std::string& key, float value);
  void fact(const std::string& key, bool value);
  void fact(const std::string& key, const std::vector<std::string>& values);
  void fact(const std::string& key, const std::vector<float>& values);
  void fact(const std::string& key, const std::vector<std::int32_t>& values);
  void drop_fact(const std::string& key) { facts_.erase(key); }

  /// Shape outermost first; `bytes` as the type has them.
  void tensor(const std::string& name, const std::vector<std::int64_t>& shape, formats::GgufType type,
              std::string bytes);
  void drop_tensor(const std::string& name) { tensors_.erase(name); }

  std::string finish() const;

 private:
  struct Tensor {
    std::vector<std::int64_t> shape;
    formats::GgufType type;
    std::string bytes;
  };
  std::map<std::string, std::string> facts_;  // key: type and value as bytes
  std::map<std::string, Tensor> tensors_;
};

/// Random numbers of a type, as its blocks have them: of about ±`size`.
std::string random_tensor(formats::GgufType type, std::int64_t numbers, float size, std::mt19937_64& random);

struct SmallModel {
  std::int64_t layers = 3, width = 64, heads = 6, kv_heads = 2, head_dim = 32, hidden = 96;
  formats::GgufType type = formats::GgufType::f32;  ///< of all matrices
  bool tied = true;
};

/// A Llama-type model of random weights, whose tokens are the bytes and a few pieces; begin token 1, end token 2.
GgufWriter small_model(const SmallModel& model, std::uint64_t seed = 1);

/// Writes a file into the directory for temporary ones, removed with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace attn::model

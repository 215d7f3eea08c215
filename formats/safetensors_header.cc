// A strict reader of safetensors headers. It listens to the parser's events, since a JSON document kept as a tree
// would have lost what a header must not have: keys that come twice.
#include "formats/safetensors_header.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "formats/bytes.h"
#include "formats/tensor.h"

namespace attn::formats {
namespace {

using Json = nlohmann::json;

class HeaderListener : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderListener(std::vector<SafetensorsEntry>* entries) : entries_(entries) {}

  const std::string& fault() const { return fault_; }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::before: place_ = Place::root; return true;
      case Place::root_value: return enter_root_value();
      default: return refuse_value();
    }
  }

  bool key(std::string& key) override {
    if (place_ == Place::entry) return enter_field(key);
    if (!(place_ == Place::root ? names_ : metadata_keys_).insert(key).second) {
      return refuse("has the key " + in_quotes(key) + " twice");
    }
    key_ = key;
    if (place_ == Place::root) place_ = Place::root_value;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      for (const auto& [present, field] : {std::pair(has_dtype_, "dtype"), std::pair(has_shape_, "shape"),
                                           std::pair(has_offsets_, "data_offsets")}) {
        if (!present) return refuse("lacks " + in_quotes(field) + " of the tensor " + in_quotes(key_));
      }
    }
    place_ = place_ == Place::root ? Place::after : Place::root;
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::dtype) return refuse_value();
    entries_->back().dtype = value;
    place_ = Place::entry;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::shape && place_ != Place::offsets) return refuse_value();
    place_ = place_ == Place::shape ? Place::in_shape : Place::in_offsets;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::in_shape) return append_size(value);
    if (place_ != Place::in_offsets || offsets_seen_ == 2) return refuse_value();
    (offsets_seen_++ == 0 ? entries_->back().begin : entries_->back().end) = value;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::in_offsets && offsets_seen_ != 2) return refuse_value();
    place_ = Place::entry;
    return true;
  }

  bool number_integer(std::int64_t) override { return refuse_value(); }
  bool number_float(double, const std::string&) override { return refuse_value(); }
  bool boolean(bool) override { return refuse_value(); }
  bool null() override { return refuse_value(); }
  bool binary(Json::binary_t&) override { return refuse_value(); }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    if (!fault_.empty()) return false;
    return refuse("is no valid JSON near byte " + std::to_string(position));
  }

 private:
  enum class Place {
    before,
    root,
    root_value,
    entry,
    dtype,
    shape,
    in_shape,
    offsets,
    in_offsets,
    metadata,
    after
  };

  bool enter_root_value() {
    if (key_ == "__metadata__") {
      place_ = Place::metadata;
      return true;
    }
    entries_->push_back({.name = key_});
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_seen_ = 0;
    place_ = Place::entry;
    return true;
  }

  bool enter_field(const std::string& field) {
    bool* present = field == "dtype"          ? &has_dtype_
                    : field == "shape"        ? &has_shape_
                    : field == "data_offsets" ? &has_offsets_
                                              : nullptr;
    if (present == nullptr || *present) {
      return refuse("has the key " + in_quotes(field) + (present == nullptr ? "" : " twice") + " in the tensor " +
                    in_quotes(key_) + ", where dtype, shape and data_offsets stand once each");
    }
    *present = true;
    place_ = field == "dtype" ? Place::dtype : field == "shape" ? Place::shape : Place::offsets;
    return true;
  }

  bool append_size(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse("has a size beyond 2^63 - 1 in the shape of the tensor " + in_quotes(key_));
    }
    std::vector<std::int64_t>& shape = entries_->back().shape;
    if (shape.size() == kMaxFileRank) {
      return refuse("has more than 32 dimensions in the shape of the tensor " + in_quotes(key_));
    }
    shape.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool refuse_value() {
    switch (place_) {
      case Place::before: return refuse("is not a JSON object");
      case Place::metadata: return refuse("has a value in __metadata__ that is no string");
      case Place::dtype: return refuse("has a dtype that is no string in the tensor " + in_quotes(key_));
      case Place::shape:
      case Place::in_shape:
        return refuse("has a shape that is no list of whole numbers from 0 up in the tensor " + in_quotes(key_));
      case Place::offsets:
      case Place::in_offsets:
        return refuse("has data_offsets that are not two whole numbers from 0 up in the tensor " + in_quotes(key_));
      default: return refuse("has something other than an object under the key " + in_quotes(key_));
    }
  }

  bool refuse(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }

  std::vector<SafetensorsEntry>* entries_;
  std::string fault_;
  Place place_ = Place::before;
  std::string key_;  // of the root, or of the metadata
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  int offsets_seen_ = 0;
};

}  // namespace

Status parse_safetensors_header(const std::string& source, std::string_view text,
                                std::vector<SafetensorsEntry>* entries) {
  HeaderListener listener(entries);
  // The parser takes a zero byte for the end and would pass over what follows it.
  const std::size_t zero = text.find('\0');
  if (zero == std::string_view::npos && Json::sax_parse(text, &listener)) return {};
  const std::string fault =
      zero == std::string_view::npos ? listener.fault() : "is no valid JSON near byte " + std::to_string(zero);
  return Status::error(source + ": the .safetensors header " + fault +
                       "; save it again with a safetensors library");
}

}  // namespace attn::formats

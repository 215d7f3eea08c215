// The one Python literal that an .npy header may be, parsed strictly and without evaluating anything.
#include <limits>
#include <optional>

#include "formats/npy.h"

namespace attn::formats {
namespace {

class DictParser {
 public:
  DictParser(const std::string& source, std::string_view text) : source_(source), text_(text) {}

  Status parse(NpyDict* dict) {
    ATTN_RETURN_IF_ERROR(expect('{'));
    bool closed = accept('}');
    while (!closed) {
      ATTN_RETURN_IF_ERROR(entry());
      const bool comma = accept(',');
      closed = accept('}');
      if (!comma && !closed) return unexpected("',' or '}'");
    }
    skip_space();
    if (position_ < text_.size()) return unexpected("nothing after the dict");
    for (const auto& [key, present] :
         {std::pair("descr", descr_.has_value()), std::pair("fortran_order", fortran_order_.has_value()),
          std::pair("shape", shape_.has_value())}) {
      if (!present) return refuse(std::string("lacks the key '") + key + "'");
    }
    *dict = {std::move(*descr_), *fortran_order_, std::move(*shape_)};
    return {};
  }

 private:
  Status entry() {
    std::string key;
    ATTN_RETURN_IF_ERROR(string(&key));
    ATTN_RETURN_IF_ERROR(expect(':'));
    if (key == "descr") {
      if (descr_) return refuse("has the key 'descr' twice");
      return descr(&descr_.emplace());
    }
    if (key == "fortran_order") {
      if (fortran_order_) return refuse("has the key 'fortran_order' twice");
      return boolean(&fortran_order_.emplace());
    }
    if (key == "shape") {
      if (shape_) return refuse("has the key 'shape' twice");
      return tuple(&shape_.emplace());
    }
    return refuse("has the key " + in_quotes(key) + " beside 'descr', 'fortran_order' and 'shape'");
  }

  Status descr(std::string* value) {
    skip_space();
    if (position_ < text_.size() && text_[position_] == '[') {
      return refuse("describes records of several fields, but a tensor has one plain element type");
    }
    return string(value);
  }

  Status string(std::string* value) {
    skip_space();
    if (position_ == text_.size() || (text_[position_] != '\'' && text_[position_] != '"')) {
      return unexpected("a string");
    }
    const char quote = text_[position_];
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return refuse("has a string that doesn't end");
    const std::string_view inside = text_.substr(position_ + 1, end - position_ - 1);
    if (inside.find('\\') != std::string_view::npos)
      return refuse("has a string with a backslash, which is not read");
    position_ = end + 1;
    *value = inside;
    return {};
  }

  Status boolean(bool* value) {
    skip_space();
    for (const bool meaning : {false, true}) {
      const std::string_view word = meaning ? "True" : "False";
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        *value = meaning;
        return {};
      }
    }
    return unexpected("True or False");
  }

  // In Python (3) is a number, (3,) a tuple.
  Status tuple(std::vector<std::int64_t>* values) {
    ATTN_RETURN_IF_ERROR(expect('('));
    bool closed = accept(')');
    while (!closed) {
      if (values->size() == kMaxFileRank) return refuse("has a shape of more than 32 dimensions");
      ATTN_RETURN_IF_ERROR(size(&values->emplace_back()));
      const bool comma = accept(',');
      closed = accept(')');
      if (!comma && (!closed || values->size() == 1)) return unexpected("',' in the shape");
    }
    return {};
  }

  Status size(std::int64_t* value) {
    skip_space();
    if (position_ < text_.size() && text_[position_] == '-') {
      return refuse("has a negative size in its shape; sizes are 0 or more");
    }
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    const std::size_t start = position_;
    *value = 0;
    for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'; ++position_) {
      const int digit = text_[position_] - '0';
      if (*value > (kMax - digit) / 10) return refuse("has a size beyond 2^63 - 1 in its shape");
      *value = *value * 10 + digit;
    }
    if (position_ == start) return unexpected("a size");
    if (position_ - start > 1 && text_[start] == '0') return refuse("has a size with a leading zero in its shape");
    return {};
  }

  void skip_space() {
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos) {
      ++position_;
    }
  }

  bool accept(char c) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  Status expect(char c) { return accept(c) ? Status() : unexpected(std::string("'") + c + "'"); }

  Status unexpected(const std::string& expected) const {
    const std::string found = position_ < text_.size() ? in_quotes(text_.substr(position_, 1)) : "the end";
    return refuse("has " + found + " at byte " + std::to_string(position_) + " where " + expected + " is expected");
  }

  Status refuse(const std::string& fault) const {
    return Status::error(source_ + ": the .npy header " + fault + "; save it again with numpy.save");
  }

  const std::string& source_;
  std::string_view text_;
  std::size_t position_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_order_;
  std::optional<std::vector<std::int64_t>> shape_;
};

}  // namespace

Status parse_npy_dict(const std::string& source, std::string_view text, NpyDict* dict) {
  return DictParser(source, text).parse(dict);
}

}  // namespace attn::formats

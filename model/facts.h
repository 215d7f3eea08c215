// Facts of a GGUF file, by key and type.
#pragma once

#include <optional>
#include <string>

#include "formats/gguf.h"

namespace attn::model {

/// The fact, or nullptr where there is none of that key and type.
template <class Value>
const Value* find_fact(const formats::Gguf& gguf, std::string_view key) {
  const auto found = gguf.facts.find(key);
  return found == gguf.facts.end() ? nullptr : std::get_if<Value>(&found->second);
}

/// Absent where there is none of that key. An error where it has another type.
template <class Value>
Status optional_fact(const formats::Gguf& gguf, const std::string& key, std::optional<Value>* value) {
  const auto found = gguf.facts.find(key);
  if (found == gguf.facts.end()) return {};
  const Value* read = std::get_if<Value>(&found->second);
  if (!read)
    return Status::error("model: the fact " + key +
                         " has another type than it should; fetch or convert the file again");
  *value = *read;
  return {};
}

/// An error where it is missing or has another type.
template <class Value>
Status require_fact(const formats::Gguf& gguf, const std::string& key, const Value** value) {
  *value = find_fact<Value>(gguf, key);
  if (*value) return {};
  const bool other = gguf.facts.find(key) != gguf.facts.end();
  return Status::error("model: the fact " + key + (other ? " has another type than it should" : " is missing") +
                       "; fetch or convert the file again");
}

}  // namespace attn::model

#include "model/unicode.h"

#include <utf8proc.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace attn::model {
namespace {

const std::uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const std::uint8_t*>(text.data()); }

CharacterKind kind_of(std::int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterKind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterKind::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CharacterKind::space;
    default: return (code >= 9 && code <= 13) || code == 0x85 ? CharacterKind::space : CharacterKind::other;
  }
}

}  // namespace

Character first_character(std::string_view text) {
  utf8proc_int32_t code = -1;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &code);
  if (bytes <= 0 || code < 0) return {};
  return {code, static_cast<std::size_t>(bytes), kind_of(code)};
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (; !text.empty(); text.remove_prefix(characters.back().size()))
    characters.push_back(text.substr(0, first_character(text).bytes));
  return characters;
}

bool is_punctuation(std::int32_t code) {
  if ((code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
      (code >= 123 && code <= 126)) {
    return true;
  }
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO: return true;
    default: return false;
  }
}

bool is_ideograph(std::int32_t code) {
  const auto within = [code](std::int32_t first, std::int32_t last) { return code >= first && code <= last; };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) || within(0x2A700, 0x2B73F) ||
         within(0x2B740, 0x2B81F) || within(0x2B820, 0x2CEAF) || within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

bool is_left_out(std::int32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code == 0 || code == 0xFFFD) return true;
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN: return true;
    default: return false;
  }
}

std::string lower_case(std::string_view text, bool lower, bool strip_accents) {
  // Decomposing first and composing never: what BERT's own code does.
  const auto options = strip_accents ? UTF8PROC_DECOMPOSE : static_cast<utf8proc_option_t>(0);
  std::string result;
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  if (size < 0) return std::string(text);
  std::string_view rest(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(size));
  while (!rest.empty()) {
    const Character character = first_character(rest);
    rest.remove_prefix(character.bytes);
    if (strip_accents && utf8proc_category(character.code) == UTF8PROC_CATEGORY_MN) continue;
    utf8proc_uint8_t encoded[4];
    const utf8proc_ssize_t count =
        utf8proc_encode_char(lower ? utf8proc_tolower(character.code) : character.code, encoded);
    result.append(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(count));
  }
  return result;
}

std::string printable_label(std::string_view bytes) {
  std::string label;
  while (!bytes.empty()) {
    const Character character = first_character(bytes);
    const std::string_view piece = bytes.substr(0, character.bytes);
    bytes.remove_prefix(character.bytes);
    if (piece == " ") {
      label += "\u2581";
    } else if (piece == "\n") {
      label += "\\n";
    } else if (piece == "\t") {
      label += "\\t";
    } else if (character.code < 0 || utf8proc_category(character.code) == UTF8PROC_CATEGORY_CC) {
      char escaped[8];
      for (const char byte : piece) {
        std::snprintf(escaped, sizeof escaped, "<0x%02X>", static_cast<unsigned char>(byte));
        label += escaped;
      }
    } else {
      label += piece;
    }
  }
  return label;
}

}  // namespace attn::model

// Characters of a UTF-8 text and their kinds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn::model {

enum class CharacterKind : std::uint8_t {
  letter,  ///< \p{L}
  number,  ///< \p{N}
  space,   ///< \s
  other,
};

struct Character {
  std::int32_t code = -1;  ///< −1: one byte that is no UTF-8
  std::size_t bytes = 1;
  CharacterKind kind = CharacterKind::other;
};

/// The character that a text begins with; the text must not be empty.
Character first_character(std::string_view text);

/// All characters of a text, each byte that is no UTF-8 alone.
std::vector<std::string_view> characters_of(std::string_view text);

/// Punctuation as BERT has it: \p{P}, and every printable ASCII character that is neither letter, number nor blank.
bool is_punctuation(std::int32_t code);

/// Characters of CJK ideographs, each of which BERT takes for a word.
bool is_ideograph(std::int32_t code);

/// Control and format characters (but \t, \n and \r), which BERT leaves out, and the replacement character.
bool is_left_out(std::int32_t code);

/// Lower case; with `strip_accents` decomposed (NFD) and without combining marks. Text that is no UTF-8 stays as it is.
std::string lower_case(std::string_view text, bool lower, bool strip_accents);

/// A label for a token's bytes: blanks as ▁, line breaks and other controls as escapes, bytes that are no UTF-8 as <0xE2>.
std::string printable_label(std::string_view bytes);

}  // namespace attn::model

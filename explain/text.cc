// A document as plain text for a terminal.
#include <sstream>

#include "explain/layout.h"
#include "explain/render.h"

namespace attn::explain {
namespace {

constexpr std::size_t kTextWidth = 100;

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void add_underlined(std::string* to, const std::string& text, char with) {
  *to += text;
  *to += '\n';
  to->append(width_of(text), with);
  *to += "\n\n";
}

std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string word, line, lines;
  while (words >> word) {
    if (!line.empty() && width_of(line) + 1 + width_of(word) > kTextWidth) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line + "\n\n";
}

struct TextFormat {
  std::string operator()(const Heading& heading) const {
    std::string text = "\n";
    add_underlined(&text, heading.text, heading.level == 1 ? '=' : '-');
    return text;
  }
  std::string operator()(const Paragraph& paragraph) const { return wrapped(paragraph.text); }
  std::string operator()(const Note& note) const { return wrapped("Notice: " + note.text); }

  std::string operator()(const Calculations& calculations) const {
    std::string text;
    for (const std::string& line : lines_of(calculations)) text += "  " + without_trailing_blanks(line) + "\n";
    return text + "\n";
  }

  std::string operator()(const Table& unaligned) const {
    const Table table = aligned(unaligned);
    std::string text = "  " + table.caption + "\n";
    if (!table.columns.empty() && !table.rows.empty()) {
      std::string header = "    " + std::string(width_of(table.rows.front().name), ' ');
      for (const std::string& column : table.columns) header += "  " + column;
      text += without_trailing_blanks(header) + "\n";
    }
    for (const Table::Row& row : table.rows) {
      std::string line = "    " + row.name;
      for (const std::string& cell : row.cells) line += "  " + cell;
      text += without_trailing_blanks(line) + "\n";
    }
    return text + "\n";
  }
};

}  // namespace

std::string as_text(const Document& document) {
  std::string text;
  add_underlined(&text, document.title, '=');
  for (const Block& block : document.blocks) text += std::visit(TextFormat{}, block);
  text.erase(text.find_last_not_of('\n') + 1);
  return text + "\n";
}

}  // namespace attn::explain

// A document as Markdown: pipe tables, and calculations as indented code, which needs no escapes.
#include "explain/layout.h"
#include "explain/render.h"

namespace attn::explain {
namespace {

// What Markdown would read as markup stands for itself.
std::string escaped(const std::string& text) {
  std::string escaped;
  for (const char character : text) {
    if (std::string("\\`*_{}[]<>|#&~").find(character) != std::string::npos) escaped += '\\';
    escaped += character;
  }
  return escaped;
}

std::string table_row(const std::string& name, const std::vector<std::string>& cells) {
  std::string row = "| " + name + " |";
  for (const std::string& cell : cells) row += " " + cell + " |";
  return row + "\n";
}

struct MarkdownFormat {
  bool in_part = false;

  // Steps lie a level below the part that they are in; in front of the first part, directly below the title.
  std::string operator()(const Heading& heading) {
    in_part = in_part || heading.level == 1;
    return std::string(heading.level == 1 || !in_part ? 2 : 3, '#') + " " + escaped(heading.text) + "\n\n";
  }
  std::string operator()(const Paragraph& paragraph) const { return escaped(paragraph.text) + "\n\n"; }
  std::string operator()(const Note& note) const { return "> **Notice:** " + escaped(note.text) + "\n\n"; }

  std::string operator()(const Calculations& calculations) const {
    std::string text;
    for (const std::string& line : lines_of(calculations)) text += "    " + line + "\n";
    return text + "\n";
  }

  std::string operator()(const Table& table) const {
    if (table.rows.empty()) return "";
    const std::size_t count = table.rows.front().cells.size();
    std::vector<std::string> columns(count);
    for (std::size_t c = 0; c < table.columns.size(); ++c) columns[c] = escaped(table.columns[c]);
    std::string text = "**" + escaped(table.caption) + "**\n\n" + table_row("", columns) +
                       table_row("---", std::vector<std::string>(count, "---:"));
    for (const Table::Row& row : table.rows) text += table_row(escaped(row.name), row.cells);
    return text + "\n";
  }
};

}  // namespace

std::string as_markdown(const Document& document) {
  std::string text = "# " + escaped(document.title) + "\n\n";
  MarkdownFormat format;
  for (const Block& block : document.blocks) text += std::visit(format, block);
  text.pop_back();
  return text;
}

}  // namespace attn::explain

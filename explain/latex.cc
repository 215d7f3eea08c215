// A document as LaTeX that needs amsmath alone.
#include "explain/latex_symbols.h"
#include "explain/render.h"

namespace attn::explain {
namespace {

std::string in_text(const std::string& text) { return "\\text{" + latex_text(text) + "}"; }

struct LatexFormat {
  std::string operator()(const Heading& heading) const {
    const std::string command = heading.level == 1 ? "\\section*{" : "\\subsection*{";
    return command + latex_text(heading.text) + "}\n\n";
  }
  std::string operator()(const Paragraph& paragraph) const { return latex_text(paragraph.text) + "\n\n"; }
  std::string operator()(const Note& note) const { return "\\emph{Notice:} " + latex_text(note.text) + "\n\n"; }

  std::string operator()(const Calculations& calculations) const {
    std::string text = "\\begin{align*}\n";
    for (const auto& line : calculations.lines) {
      const std::string label = line.label.empty() ? "" : in_text(line.label);
      text += label + " &\\quad " + latex_math(line.math);
      text += &line == &calculations.lines.back() ? "\n" : " \\\\\n";
    }
    return text + "\\end{align*}\n\n";
  }

  std::string operator()(const Table& table) const {
    if (table.rows.empty()) return "";
    const std::size_t columns = table.rows.front().cells.size();
    std::string text = latex_text(table.caption) + "\n\\[\n\\begin{array}{l|" + std::string(columns, 'r') + "}\n";
    for (const std::string& column : table.columns) text += " & " + in_text(column);
    if (!table.columns.empty()) text += " \\\\ \\hline\n";
    for (const Table::Row& row : table.rows) {
      text += in_text(row.name);
      for (const std::string& cell : row.cells) text += " & " + latex_math(cell);
      text += " \\\\\n";
    }
    return text + "\\end{array}\n\\]\n\n";
  }
};

}  // namespace

std::string as_latex(const Document& document) {
  std::string text =
      "\\documentclass{article}\n\\usepackage{amsmath}\n\\allowdisplaybreaks\n\\setlength{\\parindent}{0pt}\n"
      "\\begin{document}\n\n\\section*{" +
      latex_text(document.title) + "}\n\n";
  for (const Block& block : document.blocks) text += std::visit(LatexFormat{}, block);
  return text + "\\end{document}\n";
}

}  // namespace attn::explain

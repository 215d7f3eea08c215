// What a lesson is made of, before it is text, Markdown or LaTeX.
//
// Strings hold plain Unicode: "−∞", "·", "√2", "10⁻⁵". Each format writes them in its own way.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace attn::explain {

struct Heading {
  int level;  ///< 1: the parts of a lesson, 2: its steps
  std::string text;
};

struct Paragraph {
  std::string text;
};

/// What to notice after a step.
struct Note {
  std::string text;
};

/// Calculations below each other, each with a name in front (which may be empty).
struct Calculations {
  struct Line {
    std::string label;
    std::string math;  ///< numbers, operators, exp, max …; words are allowed
  };
  std::vector<Line> lines;
};

/// Named rows of numbers. `columns` names the columns; empty: they have no names.
struct Table {
  struct Row {
    std::string name;
    std::vector<std::string> cells;
  };
  std::string caption;
  std::vector<std::string> columns;
  std::vector<Row> rows;
};

using Block = std::variant<Heading, Paragraph, Note, Calculations, Table>;

struct Document {
  std::string title;
  std::vector<Block> blocks;
};

}  // namespace attn::explain

// Columns of characters: widths, padding, alignment at the decimal point.
#include "explain/layout.h"

#include <algorithm>

namespace attn::explain {
namespace {

std::string blanks(std::size_t width) { return std::string(width, ' '); }

// What stands before the decimal point, or all of a whole number.
std::size_t width_before_point(const std::string& cell) { return width_of(cell.substr(0, cell.find('.'))); }

// Vectors and words begin at the left edge; numbers stand under each other's decimal points.
bool holds_numbers(const Table& table, std::size_t column) {
  return std::none_of(table.rows.begin(), table.rows.end(),
                      [&](const Table::Row& row) { return row.cells[column].starts_with('('); });
}

void align_column(Table* table, std::size_t column) {
  std::size_t before_point = 0, width = 0;
  if (holds_numbers(*table, column)) {
    for (const Table::Row& row : table->rows) {
      before_point = std::max(before_point, width_before_point(row.cells[column]));
    }
    for (Table::Row& row : table->rows) {
      std::string& cell = row.cells[column];
      cell = blanks(before_point - width_before_point(cell)) + cell;
    }
  }
  for (const Table::Row& row : table->rows) width = std::max(width, width_of(row.cells[column]));
  if (!table->columns.empty()) {
    width = std::max(width, width_of(table->columns[column]));
    table->columns[column] = padded(table->columns[column], width);
  }
  for (Table::Row& row : table->rows) row.cells[column] = padded(row.cells[column], width);
}

}  // namespace

std::size_t width_of(const std::string& text) {
  // The bytes 10xxxxxx continue a character.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
  return width > width_of(text) ? text + blanks(width - width_of(text)) : text;
}

std::vector<std::string> lines_of(const Calculations& calculations) {
  std::size_t width = 0;
  for (const auto& line : calculations.lines) width = std::max(width, width_of(line.label));
  std::vector<std::string> lines;
  for (const auto& line : calculations.lines) {
    lines.push_back(width == 0 ? line.math : padded(line.label, width) + "  " + line.math);
  }
  return lines;
}

Table aligned(Table table) {
  std::size_t names = 0;
  for (const Table::Row& row : table.rows) names = std::max(names, width_of(row.name));
  for (Table::Row& row : table.rows) row.name = padded(row.name, names);
  const std::size_t columns = table.rows.empty() ? 0 : table.rows.front().cells.size();
  for (std::size_t column = 0; column < columns; ++column) align_column(&table, column);
  return table;
}

}  // namespace attn::explain

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/table.h"

#include <algorithm>
#include <cstdio>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

int64_t code_points(std::string_view cell) {
  return std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string padded(const std::string& cell, int64_t width, Align align) {
  const std::string blanks(static_cast<size_t>(std::max<int64_t>(0, width - code_points(cell))), ' ');
  return align == Align::right ? blanks + cell : cell + blanks;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  ensure(cells.size() == columns_.size(), "a table row has a cell for each column");
  for (auto& cell : cells) {
    for (char& c : cell) {
      if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
    }
  }
  rows_.push_back(std::move(cells));
}

std::string Table::to_text(int64_t indent) const {
  std::vector<int64_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(code_points(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], code_points(row[c]));
  }
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string out;
  std::string head = margin;
  std::string rule = margin;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const std::string gap = c == 0 ? "" : "  ";
    head += gap + padded(columns_[c].title, widths[c], columns_[c].align);
    rule += gap + std::string(static_cast<size_t>(widths[c]), '-');
  }
  append_line(out, head);
  append_line(out, rule);
  for (const auto& row : rows_) {
    std::string line = margin;
    for (size_t c = 0; c < row.size(); ++c) line += (c == 0 ? "" : "  ") + padded(row[c], widths[c], columns_[c].align);
    append_line(out, line);
  }
  return out;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + " %";
}

}  // namespace lockstep::base

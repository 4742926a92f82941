// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

// A text table with aligned columns for terminals and logs. Widths count code points; control characters in cells
// become '?', so a hostile file name cannot move the cursor.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);  // REQUIRES: as many as there are columns
  size_t rows() const { return rows_.size(); }
  // Header, rule, rows, each with `indent` blanks in front and a line end.
  std::string to_text(int64_t indent = 2) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A number with `digits` behind the point: "0.9130".
std::string fixed(double value, int digits);
// "12.3 %".
std::string percent(double share, int digits = 1);

}  // namespace lockstep::base

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

// A table of comma-separated values whose first line names the columns.
struct Csv {
  struct Row {
    std::vector<std::string> cells;
    int line = 0;  // in the file, from 1
  };
  std::string source;
  std::vector<std::string> columns;
  std::vector<Row> rows;

  // The cell of a row under that title; user error, naming the nearest titles, when there is no such column.
  const std::string& at(const Row& row, std::string_view column) const;
};

// Fields may stand in double quotes (a doubled one inside is one) and then hold commas and line ends. User error with
// the line for a quote that is never closed or a row of another width. `source` names it in errors.
Csv parse_csv(std::string_view content, const std::string& source);

}  // namespace lockstep::base

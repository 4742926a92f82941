// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/measured_columns.h"

#include <algorithm>
#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::advice {
namespace {

using base::text;
using Figures = MeasuredTable::Figures;

struct FigureColumn {
  const char* title;
  std::function<std::string(const Figures&)> cell;  // empty: the row has no such figure
};

const std::vector<FigureColumn>& figure_columns() {
  static const std::vector<FigureColumn> all{
      {"of the runs",
       [](const Figures& row) {
         const bool there = row.efficiency_low && row.efficiency_high;
         return there ? text(base::fixed(*row.efficiency_low, 3), " to ", base::fixed(*row.efficiency_high, 3)) : "";
       }},
      {"planned samples/s",
       [](const Figures& row) { return row.planned_rate ? base::fixed(*row.planned_rate, 1) : ""; }},
      {"planned hours", [](const Figures& row) { return row.planned_hours ? base::fixed(*row.planned_hours, 2) : ""; }},
      {"planned with", [](const Figures& row) { return row.planned_with; }},
      {"communication hidden", [](const Figures& row) { return row.hidden ? base::percent(*row.hidden, 0) : ""; }},
      {"metric", [](const Figures& row) { return row.score; }}};
  return all;
}

}  // namespace

void add_measured_columns(const MeasuredTable& table, Paper::Grid& grid) {
  if (table.figures.empty()) return;  // not read from a document
  base::ensure(table.figures.size() == table.rows.size() && grid.rows.size() == table.rows.size(), "a line a row");
  for (const FigureColumn& column : figure_columns()) {
    std::vector<std::string> cells;
    for (const auto& row : table.figures) cells.push_back(column.cell(row));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& cell) { return cell.empty(); })) continue;
    grid.columns.push_back({column.title, base::Align::right});
    for (size_t i = 0; i < cells.size(); ++i) grid.rows[i].push_back(cells[i].empty() ? "-" : cells[i]);
  }
}

}  // namespace lockstep::advice

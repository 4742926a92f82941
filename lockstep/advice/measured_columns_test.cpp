// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/measured_columns.h"

#include <gtest/gtest.h>

namespace lockstep::advice {
namespace {

TEST(MeasuredColumnsTest, ShowsWhatTheRowsHaveAndNoMore) {
  MeasuredTable table;
  table.rows = {{.gpus = 1, .rate = 10}, {.gpus = 2, .rate = 19}};
  table.figures = {{.score = "top-1 50.0 %"},
                   {.efficiency_low = .9, .efficiency_high = 1, .planned_rate = 19.5, .score = "top-1 62.5 %"}};
  Paper::Grid grid{{{"GPUs"}}, {{"1"}, {"2"}}, ""};
  add_measured_columns(table, grid);
  ASSERT_EQ(grid.columns.size(), 4U);  // nobody measured what was hidden
  EXPECT_EQ(grid.rows[0], (std::vector<std::string>{"1", "-", "-", "top-1 50.0 %"}));
  EXPECT_EQ(grid.rows[1], (std::vector<std::string>{"2", "0.900 to 1.000", "19.5", "top-1 62.5 %"}));
}

TEST(MeasuredColumnsTest, ATableOfRatesAloneStaysAsItIs) {
  MeasuredTable table;
  table.rows = {{.gpus = 1, .rate = 10}};
  table.figures = {{}};
  Paper::Grid grid{{{"GPUs"}}, {{"1"}}, ""};
  add_measured_columns(table, grid);
  EXPECT_EQ(grid.columns.size(), 1U);
  EXPECT_EQ(grid.rows[0].size(), 1U);
}

}  // namespace
}  // namespace lockstep::advice

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/table.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

TEST(TableTest, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table({{"class"}, {"recall", Align::right}});
  table.add({"abyssinian", "0.91"});
  table.add({"pug", "1.00"});
  EXPECT_EQ(table.to_text(2),
            "  class       recall\n"
            "  ----------  ------\n"
            "  abyssinian    0.91\n"
            "  pug           1.00\n");
}

TEST(TableTest, CountsCodePointsNotBytes) {
  Table table({{"name"}, {"n", Align::right}});
  table.add({"caf\xC3\xA9", "1"});
  table.add({"cafes", "2"});
  EXPECT_NE(table.to_text(0).find("caf\xC3\xA9   1\n"), std::string::npos);
}

TEST(TableTest, DisarmsControlCharacters) {
  Table table({{"file"}});
  table.add({"a\x1b[2Jb\n"});
  EXPECT_NE(table.to_text(0).find("a?[2Jb?\n"), std::string::npos);
}

TEST(TableTest, RefusesARowOfAnotherLength) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add({"only one"}), Error);
}

TEST(TableTest, FormatsNumbers) {
  EXPECT_EQ(fixed(0.91304, 3), "0.913");
  EXPECT_EQ(percent(0.1234), "12.3 %");
}

}  // namespace
}  // namespace lockstep::base

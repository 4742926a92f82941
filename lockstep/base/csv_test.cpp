// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/csv.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

TEST(CsvTest, ReadsPlainAndQuotedFields) {
  const Csv csv = parse_csv("name,price\r\nplain,1\n\"a, \"\"b\"\"\nc\",2\n,\n", "p.csv");
  EXPECT_EQ(csv.columns, (std::vector<std::string>{"name", "price"}));
  ASSERT_EQ(csv.rows.size(), 3U);
  EXPECT_EQ(csv.at(csv.rows[0], "name"), "plain");
  EXPECT_EQ(csv.at(csv.rows[1], "name"), "a, \"b\"\nc");
  EXPECT_EQ(csv.at(csv.rows[1], "price"), "2");
  EXPECT_EQ(csv.at(csv.rows[2], "price"), "");
  EXPECT_EQ(csv.rows[1].line, 3);
  EXPECT_EQ(csv.rows[2].line, 5);
}

TEST(CsvTest, ReadsALastLineWithoutItsEnd) {
  const Csv csv = parse_csv("\xef\xbb\xbfx\n1\n\n2", "p.csv");
  EXPECT_EQ(csv.columns[0], "x");
  ASSERT_EQ(csv.rows.size(), 2U);
  EXPECT_EQ(csv.rows[1].cells[0], "2");
}

void expect_refused(const std::string& content, const std::string& position) {
  try {
    parse_csv(content, "p.csv");
    FAIL() << "accepted " << content;
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::user);
    EXPECT_NE(std::string(error.what()).find(position), std::string::npos) << error.what();
  }
}

TEST(CsvTest, NamesTheLineOfWhatIsWrong) {
  expect_refused("a,b\n1,2\n3\n", "p.csv:3");
  expect_refused("a\n\"open\n\n", "p.csv:2");
  expect_refused("", "p.csv");
}

TEST(CsvTest, AnUnknownColumnBringsTheNearest) {
  const Csv csv = parse_csv("price\n1\n", "p.csv");
  EXPECT_THROW(csv.at(csv.rows[0], "prise"), Error);
}

}  // namespace
}  // namespace lockstep::base

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/text_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TextTableTest, ReadsQuotedCells) {
  const TextTable table(
      "path,caption\r\na.jpg,\"a dog, running\"\r\n\r\n# a remark\nb.jpg,\"two\nlines and \"\"quotes\"\"\"\n", "x.csv");
  EXPECT_THAT(table.header(), ElementsAre("path", "caption"));
  ASSERT_EQ(table.size(), 2);
  EXPECT_THAT(table.row(0), ElementsAre("a.jpg", "a dog, running"));
  EXPECT_THAT(table.row(1), ElementsAre("b.jpg", "two\nlines and \"quotes\""));
  EXPECT_EQ(table.where(1), "x.csv:5");
}

TEST(TextTableTest, ReadsTheLineEndsOfOldMacs) {
  const TextTable table("path,label\ra.jpg,cat\rb.jpg,dog\r", "x.csv");
  EXPECT_THAT(table.header(), ElementsAre("path", "label"));
  ASSERT_EQ(table.size(), 2);
  EXPECT_THAT(table.row(1), ElementsAre("b.jpg", "dog"));
}

TEST(TextTableTest, AQuoteWithinACellIsALetter) {
  const TextTable inches("a.jpg\tA 5\" nail\nb.jpg\tA dog\nc.jpg\tA 5\" nail\n", "x.tsv");
  ASSERT_EQ(inches.size(), 3);
  EXPECT_THAT(inches.row(0), ElementsAre("a.jpg", "A 5\" nail"));
  EXPECT_THAT(inches.row(1), ElementsAre("b.jpg", "A dog"));
  EXPECT_EQ(inches.where(2), "x.tsv:3");
  const TextTable blanks("a.jpg \"cat\nb.jpg dog\"\n", "x.txt");
  ASSERT_EQ(blanks.size(), 2);
  EXPECT_THAT(blanks.row(0), ElementsAre("a.jpg", "\"cat"));
  EXPECT_THAT(TextTable("a.jpg, \"x\"\"\ny, z\" , 3\nb.jpg,\"\" \"1\",2\n", "x").row(0),
              ElementsAre("a.jpg", "x\"\ny, z", "3"));
  EXPECT_THAT(TextTable("a.jpg,\"\" \"1\",2\nb.jpg,1,2\n", "x").row(0), ElementsAre("a.jpg", "\"1\"", "2"));
  EXPECT_EQ(TextTable("# don't say \"so\na.jpg,1\n# 5\", \"\nb.jpg,2\n", "x").size(), 2);
  EXPECT_THAT(TextTable("\"two\nlines\",a.jpg\n\"1\",b.jpg\n", "x").row(0), ElementsAre("two\nlines", "a.jpg"));
}

TEST(TextTableTest, FindsTheSeparatorAndWhetherThereIsAHeader) {
  const TextTable tabs("a b.jpg\tcat\nb.jpg\tdog", "x");
  EXPECT_TRUE(tabs.header().empty());
  EXPECT_THAT(tabs.row(0), ElementsAre("a b.jpg", "cat"));
  EXPECT_THAT(TextTable("train_1.jpg   5\ntrain_2.jpg 4\n", "x").row(1), ElementsAre("train_2.jpg", "4"));
  EXPECT_THAT(TextTable("image_name| comment\n1.jpg| a dog , sits\n", "x").row(0),
              ElementsAre("1.jpg", "a dog , sits"));
  EXPECT_THAT(TextTable("\xEF\xBB\xBFpath;label\n1.jpg;2\n", "x").header(), ElementsAre("path", "label"));
  EXPECT_THAT(TextTable("a.jpg,,\n", "x").row(0), ElementsAre("a.jpg", "", ""));
}

TEST(TextTableTest, FindsColumnsByNameOrNumber) {
  const TextTable table("Image_Path,Label\n1.jpg,2\n", "x.csv");
  EXPECT_EQ(table.find_column({"file", "imagepath"}), 0);
  EXPECT_EQ(table.find_column({"caption"}), -1);
  EXPECT_EQ(table.named_column("label"), 1);
  EXPECT_EQ(table.named_column("2"), 1);
  for (const char* name : {"lable", "3", "0", ""}) EXPECT_THROW(table.named_column(name), base::Error) << name;
}

TEST(TextTableTest, NamesWhatIsNoTable) {
  const auto complaint = [](const std::string& content) {
    try {
      const TextTable table(content, "x.csv");
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string("no complaint");
  };
  EXPECT_THAT(complaint(""), HasSubstr("no rows"));
  EXPECT_THAT(complaint("path,label\n"), HasSubstr("a header and no rows"));
  EXPECT_THAT(complaint("a.jpg,1\nb.jpg,\"2\n"), HasSubstr("x.csv:2: a quote is never closed"));
  EXPECT_THAT(complaint("\xFF,1\n"), HasSubstr("no UTF-8"));
  EXPECT_THAT(complaint(std::string("a\0b", 3)), HasSubstr("NUL"));
}

}  // namespace
}  // namespace lockstep::sources

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/image_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ImageColumnsTest : testing::Test {
  ImageColumns read(const std::string& content, const std::vector<std::string>& images) const {
    base::write_file(list, content);
    return {list, images};
  }
  // What is wrong, and what to do.
  std::string complaint(const std::string& content, const std::vector<std::string>& images) const {
    try {
      (void)read(content, images);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.what();
    }
    return "none";
  }

  base::TemporaryFolder folder;
  base::Path list = folder.path() / "list.csv";
};

TEST_F(ImageColumnsTest, AnImageHasTheRowOfTheLongestEndOfItsPath) {
  const ImageColumns known =
      read("path,year,place\n1.jpg,1504,Delft\nold/1.jpg,1480,\n./new/2.jpg,,\"Paris, Seine\"\nelsewhere.jpg,1,x\n",
           {"set/1.jpg", "./set/old/1.jpg", "set/new/2.jpg", "set/3.jpg"});
  EXPECT_THAT(known.names(), ElementsAre("year", "place"));
  EXPECT_EQ(known.of(0).dump(-1), R"({"year":"1504","place":"Delft"})");
  EXPECT_EQ(known.of(1).dump(-1), R"({"year":"1480"})") << "an empty cell says nothing";
  EXPECT_EQ(known.of(2).dump(-1), R"({"place":"Paris, Seine"})");
  EXPECT_TRUE(known.of(3).is_null());
  EXPECT_EQ(known.num_unlisted(), 1);
  EXPECT_EQ(known.first_unlisted(), "set/3.jpg");
}

TEST_F(ImageColumnsTest, ReadsWhatSpreadsheetsWrite) {
  const ImageColumns known = read("\xEF\xBB\xBFyear;filename;\r\n1504;1.jpg;9\r\n", {"1.jpg", "1.jpg"});
  EXPECT_THAT(known.names(), ElementsAre("year"));
  EXPECT_EQ(known.of(1).dump(-1), R"({"year":"1504"})") << "named twice, the same image";
}

TEST_F(ImageColumnsTest, IsKnownByItsContent) {
  const std::string before = read("path,year\n1.jpg,1504\n", {"1.jpg"}).sha256();
  EXPECT_NE(read("path,year\n1.jpg,1505\n", {"1.jpg"}).sha256(), before);
  EXPECT_EQ(read("path,year\n1.jpg,1504\n", {"1.jpg"}).sha256(), before);
}

TEST_F(ImageColumnsTest, WrongListsAreNamed) {
  EXPECT_THAT(complaint("", {"1.jpg"}), HasSubstr("list.csv: the table has no rows"));
  EXPECT_THAT(complaint("path,year\n", {"1.jpg"}), HasSubstr("a header and no rows"));
  EXPECT_THAT(complaint("1.jpg,1504\n", {"1.jpg"}), HasSubstr("list.csv: the first line names no columns"));
  EXPECT_THAT(complaint("work,year\nx,1504\n", {"1.jpg"}), HasSubstr("paths: work, year"));
  EXPECT_THAT(complaint("path,year,year\n1.jpg,1,2\n", {"1.jpg"}), HasSubstr("two columns are called 'year'"));
  EXPECT_THAT(complaint("path,year\n1.jpg,1504\n2.jpg,15,04\n", {"1.jpg"}),
              HasSubstr("list.csv:3: 3 cells where the first line has 2"));
  EXPECT_THAT(complaint("path,year\n1.jpg,1504\n./1.jpg,1505\n", {"1.jpg"}),
              HasSubstr("list.csv:3: \"1.jpg\" stands in line 2 too"));
  EXPECT_THAT(complaint("path,year\n1.jpg,1504\n", {"a/1.jpg", "b/1.jpg"}),
              HasSubstr("list.csv:2: \"1.jpg\" is the end of two images: a/1.jpg and b/1.jpg"));
  EXPECT_THAT(complaint("path,year\nx/1.jpg,1504\n", {"y/1.jpg", "2.jpg"}),
              HasSubstr("it has none of the 2 images, such as y/1.jpg; its first path is \"x/1.jpg\""));
}

TEST_F(ImageColumnsTest, AColumnThatItHasNotIsNamedWithThoseThatItHas) {
  const ImageColumns known = read("path,year,place\n1.jpg,1504,Delft\n", {"1.jpg"});
  known.require({"year", "place"}, "context.csv");
  try {
    known.require({"year", "plaec"}, "context.csv");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no column 'plaec', of which context.csv speaks; it has year, place"));
  }
}

}  // namespace
}  // namespace lockstep::sources

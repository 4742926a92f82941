// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/results/record.h"

namespace lockstep::results {
namespace {

TEST(ContactPageTest, HoldsAShortRowForEachImage) {
  const base::TemporaryFolder folder;
  const ResultPaths paths{folder.path() / "found.jsonl"};
  ContactPage page(paths, Terms{"pets", "abc", base::Json::object(), {"cat", "dog"}}, "images");
  const RecordHead head{"images/a.jpg", "0123456789abcdef00", {3, "x"}, "m", "t"};
  page.add(record_line(head, base::parse_json(R"({"width": 9, "height": 8, "objects": [
      {"class": "dog", "score": 0.25, "box": [1, 2, 3, 4]}, {"class": "bird", "score": 0.5, "box": [1.6, 2, 3, 4]}]})",
                                              "record")));
  page.add(record_line(head, base::parse_json(R"({"classes": [{"name": "cat", "probability": 0.5}]})", "record")));
  page.add(record_line(head, base::parse_json(R"({"age": 31.5})", "record")));
  page.add(failed_line({"images/<b>.jpg", "", {}, "m", "t"}, "no image"));
  page.write();
  const std::string html = base::read_file(paths.page());
  EXPECT_THAT(html, testing::HasSubstr(
                        R"("01/23456789abcdef.jpg","a.jpg.jpg",9,8,"2 0.500 2 2 3 4;1 0.250 1 2 3 4","",false])"));
  EXPECT_THAT(html, testing::HasSubstr(R"("a.jpg.jpg",0,0,"0 0.500","",false])"));
  EXPECT_THAT(html, testing::HasSubstr(R"("a.jpg.jpg",0,0,"","age 31.500",false])"));
  EXPECT_THAT(html, testing::HasSubstr(R"("","",0,0,"","no image",true])"));
  EXPECT_THAT(html,
              testing::HasSubstr(R"("images":4,"failed":1,"files":"found.files","classes":["cat","dog","bird"])"));
  EXPECT_THAT(html, testing::Not(testing::HasSubstr("<b>.jpg")));
}

}  // namespace
}  // namespace lockstep::results

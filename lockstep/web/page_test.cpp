// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::web {

TEST(PageTest, HasItsFilesAndNoMarkupOfItsData) {
  base::Json data = base::Json::object();
  data["path"] = "</script><script>alert(2)</script>";
  const std::string page = render_page("plan", "a < b", data);
  EXPECT_THAT(page, testing::HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page, testing::HasSubstr("a &lt; b"));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("<script>alert")));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("@[")));
}

TEST(PageTest, LoadsWhatItsKindMay) {
  const base::Json none = base::Json::object();
  EXPECT_THAT(render_page("predict", "a", none), testing::HasSubstr("img-src data: 'self' file:\">"));
  EXPECT_THAT(render_page("plan", "a", none), testing::HasSubstr("img-src data:\">"));
  EXPECT_THAT(render_page("serve", "a", none), testing::HasSubstr("connect-src 'self'\">"));
}

TEST(PageTest, NamesTheCommandThatMadeIt) {
  const base::Json none = base::Json::object();
  EXPECT_THAT(render_page("plan", "a", none), testing::HasSubstr("<title>a - lockstep plan</title>"));
  EXPECT_THAT(render_page("compare", "a", none), testing::HasSubstr("<title>a - lockstep report</title>"));
  EXPECT_THAT(render_page("partition", "a", none), testing::HasSubstr("<title>a - lockstep tune</title>"));
}

}  // namespace lockstep::web

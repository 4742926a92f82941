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

}  // namespace lockstep::web

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/calibrate.h"

#include <gtest/gtest.h>

namespace lockstep::measure {
namespace {

TEST(CalibrateTest, TimesUntilItsTimeIsOver) {
  int saved = 0;
  CalibrateOptions options;
  options.seconds = 0.2;
  options.save = [&](const base::Json&) { ++saved; };
  const auto result = calibrate(options);
  EXPECT_GT(result.cases, 0);
  EXPECT_GT(result.left_out, 0);
  EXPECT_EQ(result.failed, 0);
  EXPECT_EQ(saved, 1);
  ASSERT_FALSE(result.rows.items().empty());
  for (const auto& row : result.rows.items()) {
    EXPECT_GT(row.at("seconds").as_double(), 0) << row.dump();
    EXPECT_NE(row.at("kind").as_string(), "view");
    EXPECT_EQ(row.at("layout").as_string(), "channels_last");
  }
}

}  // namespace
}  // namespace lockstep::measure

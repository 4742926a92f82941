// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::serving {
namespace {

using testing::HasSubstr;

TEST(ExpositionTest, IsTextForPrometheus) {
  Exposition all;
  all.family("a_total", "counter", "Things.");
  all.sample("a_total", 3, {{"path", "/x\"\\\n"}, {"b", "c"}});
  all.sample("a_total", 0.5);
  EXPECT_EQ(all.text(),
            "# HELP a_total Things.\n# TYPE a_total counter\na_total{path=\"/x\\\"\\\\\\n\",b=\"c\"} 3\na_total 0.5\n");
}

TEST(ExpositionTest, BucketsAreCumulativeAndEndWithAll) {
  SecondsHistogram histogram;
  for (const double seconds : {0.0004, 0.0005, 0.3, 99.0}) histogram.add(seconds);
  Exposition all;
  histogram.show(all, "s", {{"r", "x"}});
  EXPECT_THAT(all.text(), HasSubstr("s_bucket{r=\"x\",le=\"0.0005\"} 2\n"));
  EXPECT_THAT(all.text(), HasSubstr("s_bucket{r=\"x\",le=\"0.5\"} 3\n"));
  EXPECT_THAT(all.text(), HasSubstr("s_bucket{r=\"x\",le=\"10\"} 3\n"));
  EXPECT_THAT(all.text(), HasSubstr("s_bucket{r=\"x\",le=\"+Inf\"} 4\n"));
  EXPECT_THAT(all.text(), HasSubstr("s_count{r=\"x\"} 4\n"));
  Exposition empty;
  SecondsHistogram().show(empty, "s", {});
  EXPECT_THAT(empty.text(), HasSubstr("s_bucket{le=\"+Inf\"} 0\n"));
}

}  // namespace
}  // namespace lockstep::serving

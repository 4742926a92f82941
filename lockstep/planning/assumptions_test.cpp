// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/assumptions.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::planning {
namespace {

TEST(AssumptionsTest, ListsEachSoThatItCanBeGivenBack) {
  const forecast::Assumptions before;
  forecast::Assumptions after;
  for (const auto& row : list_assumptions(before)) {
    assume(after, row.key + "=" + row.value);
    EXPECT_FALSE(row.help.empty());
  }
  const auto wanted = list_assumptions(before);
  const auto got = list_assumptions(after);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(got[i].value, wanted[i].value) << wanted[i].key;
}

TEST(AssumptionsTest, ReadsValuesWithTheirUnits) {
  forecast::Assumptions all;
  assume(all, "start_up=2 min");
  assume(all, "kwh=0.30 GBP");
  assume(all, "pue=1.5");
  assume(all, "inter_rate=200 Gbit/s");
  EXPECT_EQ(all.start_up, 120);
  assume(all, "start_up_cpu=5 s");
  EXPECT_EQ(all.start_up_cpu, 5);
  EXPECT_EQ(all.kwh, 0.30);
  EXPECT_EQ(all.currency, "GBP");
  EXPECT_EQ(all.power.overhead, 1.5);
  EXPECT_EQ(all.inter_rate, 25e9);
}

TEST(AssumptionsTest, RefusesWhatItDoesNotKnow) {
  forecast::Assumptions all;
  EXPECT_THROW(assume(all, "startup=2 min"), base::Error);
  EXPECT_THROW(assume(all, "start_up"), base::Error);
  EXPECT_THROW(assume(all, "pue=much"), base::Error);
  EXPECT_THROW(assume(all, "per_node=2.5"), base::Error);
  EXPECT_THROW(assume(all, "write_rate=0 GB/s"), base::Error);
}

}  // namespace
}  // namespace lockstep::planning

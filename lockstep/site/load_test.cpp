// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/load.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/base/error.h"

namespace lockstep::site {
namespace {

constexpr const char* kBefore =
    "cpu  100 10 20 1000 5 1 2 3 0 0\n"
    "cpu0 50 5 10 500 2 1 1 1 0 0\n"
    "cpu1 50 5 10 500 3 0 1 2 0 0\n"
    "intr 12345 0 0\n"
    "procs_running 3\n";

TEST(LoadTest, ReadsTheTicksOfEachCore) {
  const auto ticks = parse_core_ticks(kBefore);
  ASSERT_EQ(ticks.size(), 2U);
  EXPECT_EQ(ticks.at(0), (CoreTicks{63, 570}));  // without what went to nice processes and idling
  EXPECT_EQ(ticks.at(1), (CoreTicks{63, 571}));
  EXPECT_TRUE(parse_core_ticks("").empty());
  EXPECT_TRUE(parse_core_ticks("cpu0 1 2\ncpufreq\n").empty());
}

TEST(LoadTest, CountsBusyCoresBetweenTwoLooks) {
  const std::map<int64_t, CoreTicks> before{{0, {100, 1000}}, {1, {100, 1000}}, {2, {0, 0}}};
  const std::map<int64_t, CoreTicks> after{{0, {116, 1016}}, {1, {104, 1016}}, {2, {0, 0}}, {3, {9, 9}}};
  EXPECT_DOUBLE_EQ(busy_between(before, after), 1.25);  // a core that did not tick, or was not there, says nothing
}

TEST(LoadTest, AStatedNumberStandsInsteadOfLooking) {
  const char* kept = std::getenv(kBusyCoresVariable);
  const std::string before = kept ? kept : "";
  ::setenv(kBusyCoresVariable, "1.5", 1);
  EXPECT_EQ(busy_cores(), 1.5);
  for (const char* wrong : {"", "many", "-1", "2 cores", "nan"}) {
    ::setenv(kBusyCoresVariable, wrong, 1);
    EXPECT_THROW(busy_cores(), base::Error) << wrong;
  }
  ::setenv(kBusyCoresVariable, "2", 1);
  pass_busy_cores_on();
  EXPECT_STREQ(std::getenv(kBusyCoresVariable), "2");
  kept ? ::setenv(kBusyCoresVariable, before.c_str(), 1) : ::unsetenv(kBusyCoresVariable);
}

}  // namespace
}  // namespace lockstep::site

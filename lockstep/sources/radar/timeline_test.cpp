// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Scan> scans_at(const std::string& site, const std::vector<double>& minutes) {
  std::vector<Scan> scans;
  for (const double minute : minutes) scans.push_back({site, ScanFormat::level2, site, 1.7e9 + 60 * minute, 0});
  return scans;
}

TEST(TimelineTest, AGapEndsARunAndIsNamed) {
  RadarOptions options;
  const Timeline timeline = make_timeline(scans_at("KATX", {0, 5.4, 9.8, 15, 40, 45.5}), options);
  ASSERT_EQ(timeline.runs.size(), 2U);
  EXPECT_EQ(timeline.runs[0].frames.size(), 4U);
  EXPECT_EQ(timeline.runs[1].frames.size(), 2U);
  EXPECT_THAT(timeline.gaps, ElementsAre(HasSubstr("KATX: no frame for 25 minutes after 2023-11-14 22:28:20")));
}

TEST(TimelineTest, OfSeveralScansTheNearestCounts) {
  const Timeline timeline = make_timeline(scans_at("KATX", {0, 4, 5.5, 10}), {});
  ASSERT_EQ(timeline.runs.size(), 1U);
  EXPECT_THAT(timeline.runs[0].frames[1].scans, ElementsAre(2));
}

TEST(TimelineTest, ACompositeNeedsEverySite) {
  std::vector<Scan> scans = scans_at("A", {0, 5, 10});
  for (const Scan& scan : scans_at("B", {0.3, 9.9})) scans.push_back(scan);
  RadarOptions options;
  options.composite = true;
  const Timeline timeline = make_timeline(scans, options);
  ASSERT_EQ(timeline.runs.size(), 2U);
  EXPECT_EQ(timeline.runs[0].frames[0].scans.size(), 2U);
  EXPECT_THAT(timeline.gaps.front(), HasSubstr("composite: 1 of 2 sites at"));
}

TEST(TimelineTest, NoMomentIsInTwoParts) {
  std::vector<double> minutes;
  minutes.reserve(100);
  for (int i = 0; i < 100; ++i) minutes.push_back(5 * i);
  RadarOptions options;
  options.frames = 6;
  options.stride = 1;
  options.validate = 0.2;
  options.test = 0.1;
  const Timeline timeline = make_timeline(scans_at("KATX", minutes), options);
  const Windows windows = cut_windows(timeline.runs, options);
  std::array<std::pair<size_t, size_t>, 3> seen;
  seen.fill({1000, 0});
  std::array<int, 3> counts{};
  for (const Window& window : windows.all) {
    auto& [first, last] = seen[static_cast<size_t>(window.part)];
    first = std::min(first, window.first);
    last = std::max(last, window.first + 5);
    ++counts[static_cast<size_t>(window.part)];
  }
  EXPECT_LT(seen[0].second, seen[1].first);
  EXPECT_LT(seen[1].second, seen[2].first);
  EXPECT_EQ(windows.across, 10);
  EXPECT_EQ(counts[0] + counts[1] + counts[2] + windows.across, 95);
  EXPECT_GT(counts[1], 10);
  EXPECT_GT(counts[2], 5);
}

TEST(TimelineTest, ARunThatIsTooShortIsNamed) {
  const Timeline timeline = make_timeline(scans_at("KATX", {0, 5}), {});
  const Windows windows = cut_windows(timeline.runs, {});
  EXPECT_TRUE(windows.all.empty());
  ASSERT_EQ(windows.short_runs.size(), 1U);
  EXPECT_EQ(windows.short_runs[0].reason, "2 frames in a row, a sequence has 17");
}

}  // namespace
}  // namespace lockstep::sources

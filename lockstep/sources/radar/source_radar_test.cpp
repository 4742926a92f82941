// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/source_radar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/npy.h"
#include "lockstep/sources/radar/level2.h"
#include "lockstep/sources/radar/rain_world.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::sources {
namespace {

using testing::Contains;
using testing::HasSubstr;

// Twelve volumes of one event, the sixth of which is cut off when asked for.
void write_world(const base::Path& folder, bool cut_off) {
  const RainWorld world{.seed = 6};
  for (int64_t i = 0; i < 12; ++i) {
    std::string file = write_level2(world.volume(i, 40));
    if (cut_off && i == 5) file.resize(file.size() / 2);
    base::write_file(folder / base::text("volume", i + 100), file);
  }
}

SourceOptions options_for(const base::Path& folder) {
  SourceOptions options{.path = folder};
  options.radar.frames = 4;
  options.radar.stride = 2;
  options.radar.grid = {16, 4000};
  options.radar.validate = 0.4;
  return options;
}

TEST(SourceRadarTest, GivesStripsOfFramesPartedByTime) {
  const base::TemporaryFolder folder;
  write_world(folder.path(), false);
  const SourceOptions options = options_for(folder.path());
  ASSERT_TRUE(looks_like_radar(options));
  const auto source = open_radar(options);
  ASSERT_EQ(source->samples().size(), 4U);  // five, one of them across the border
  EXPECT_EQ(source->samples()[0].name, "KSYN_20240521T120000");
  EXPECT_EQ(source->samples()[0].part, Part::train);
  EXPECT_EQ(source->samples()[3].part, Part::validate);
  const auto members = source->load(1);
  ASSERT_EQ(members.size(), 2U);
  const auto frames = task::read_strip(std::as_bytes(std::span(members[0].bytes)), 16, 16);
  EXPECT_EQ(frames.count, 4);
  const base::Json about = base::parse_json(members[1].bytes, "json");
  EXPECT_EQ(about.at("times").items()[0].as_string(), "2024-05-21 12:10:00");
  const auto first = task::read_strip(std::as_bytes(std::span(source->load(0)[0].bytes)), 16, 16);
  EXPECT_TRUE(std::ranges::equal(first.frame(2), frames.frame(0)));
}

TEST(SourceRadarTest, ATruncatedVolumeIsNamedWithItsFile) {
  const base::TemporaryFolder folder;
  write_world(folder.path(), true);
  const auto source = open_radar(options_for(folder.path()));
  try {
    (void)source->load(1);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), HasSubstr("volume105: its lowest sweep is missing or in part"));
    EXPECT_THAT(error.what(), HasSubstr("cut off in record"));
  }
}

TEST(SourceRadarTest, AVolumeFetchedAgainMakesAnotherSet) {
  const base::TemporaryFolder folder;
  write_world(folder.path(), true);
  const std::string before = open_radar(options_for(folder.path()))->list_sums();
  EXPECT_EQ(open_radar(options_for(folder.path()))->list_sums(), before);
  write_world(folder.path(), false);
  EXPECT_NE(open_radar(options_for(folder.path()))->list_sums(), before);
}

TEST(SourceRadarTest, WhatWouldBeNoStripIsRefusedAtItsFirstFrame) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "wide.npy",
                   npy_file("u1", std::vector<int64_t>{3, 8192, 8192}, std::string(size_t{3} << 26, 'a')));
  SourceOptions options = options_for(folder.path());
  options.radar.frames = 3;
  options.radar.validate = 0;
  const auto source = open_radar(options);
  ASSERT_EQ(source->samples().size(), 1U);
  try {
    (void)source->load(0);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a sequence of 3 frames of 8192 x 8192 cells has more than 134217728 pixels"));
  }
}

TEST(SourceRadarTest, SharesAreBetweenNothingAndNearlyAll) {
  const base::TemporaryFolder folder;
  write_world(folder.path(), false);
  SourceOptions options = options_for(folder.path());
  options.radar.test = -0.1;
  EXPECT_THROW(open_radar(options), base::Error);
}

TEST(SourceRadarTest, DrySequencesAreLeftOut) {
  const base::TemporaryFolder folder;
  write_world(folder.path(), false);
  SourceOptions options = options_for(folder.path());
  options.radar.rain = 0.99;
  EXPECT_THROW(open_radar(options)->load(0), base::Error);
  options.radar.rain = 0.0001;
  EXPECT_NO_THROW(open_radar(options)->load(0));
}

TEST(SourceRadarTest, AGapIsNoted) {
  const base::TemporaryFolder folder;
  write_world(folder.path(), false);
  std::filesystem::remove(folder.path() / "volume104");
  EXPECT_THAT(open_radar(options_for(folder.path()))->notes(),
              Contains(HasSubstr("gap: KSYN: no frame for 10 minutes after 2024-05-21 12:15:00")));
}

TEST(SourceRadarTest, ASecondArrayOfANameIsToldAndNotMixedWithTheFirst) {
  const base::TemporaryFolder folder;
  for (const char* year : {"2023", "2024"}) {
    base::make_folders(folder.path() / year);
    base::write_file(folder.path() / year / "rain.npy",
                     npy_file("u1", std::vector<int64_t>{4, 1, 2}, std::string(8, *(year + 3))));
  }
  SourceOptions options = options_for(folder.path());
  options.radar.validate = 0;
  const auto source = open_radar(options);
  EXPECT_EQ(source->samples().size(), 1U);
  ASSERT_EQ(source->refused().size(), 1U);
  EXPECT_THAT(source->refused()[0].reason, HasSubstr("2023/rain.npy: rename it"));
}

}  // namespace
}  // namespace lockstep::sources

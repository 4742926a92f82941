// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/synthesize_radar.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {
namespace {

TEST(SynthesizeRadarTest, BothKindsAreFoundToBeRadarFilesOfTheSameFrames) {
  const base::TemporaryFolder folder;
  std::vector<std::string> strips;
  for (const char* kind : {"radar", "odim"}) {
    RadarWorldRequest request{.kind = kind, .folder = folder.path() / kind, .count = 6};
    EXPECT_FALSE(prepare_radar_world(request, {}).was_complete);
    EXPECT_TRUE(prepare_radar_world(request, {}).was_complete);
    SourceOptions options{.path = request.folder};
    options.radar.frames = 3;
    options.radar.grid = {16, 8000};
    ASSERT_TRUE(is_radar(options));
    const OpenedSource opened = open_source(options);
    EXPECT_EQ(opened.format, "radar");
    EXPECT_TRUE(opened.source->refused().empty());
    strips.push_back(opened.source->load(0)[0].bytes);
  }
  EXPECT_EQ(strips[0], strips[1]);
}

TEST(SynthesizeRadarTest, OptionsOfImagesAreRefused) {
  const base::TemporaryFolder folder;
  EXPECT_THROW(prepare_radar_world({.kind = "radar", .folder = folder.path() / "a", .image_size = 96}, {}),
               base::Error);
  EXPECT_THROW(prepare_radar_world({.kind = "radar", .folder = folder.path() / "a", .count = 0}, {}), base::Error);
}

}  // namespace
}  // namespace lockstep::sources

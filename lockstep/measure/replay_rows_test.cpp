// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/replay_rows.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::measure {
namespace {

TEST(ReplayRowsTest, EveryRecordedStreamIsReplayedToTheByte) {
  const auto streams = replay_streams({"results/recordings"}, {});
  EXPECT_GE(streams.size(), 12u);
  for (const auto& stream : streams) {
    EXPECT_TRUE(stream.exact()) << stream.name;
    const base::Json row = replay_row(stream, "the command");
    EXPECT_EQ(row.at("ratio").as_double(), 1) << stream.name;
    EXPECT_EQ(row.at("machine").as_string(), stream.recording.device);
  }
}

TEST(ReplayRowsTest, OtherSettingsReplaceOnlyWhatTheyName) {
  OtherSettings other;
  EXPECT_FALSE(other.any());
  other.capacity = int64_t{8} << 30;
  other.memory_fraction = 0.5;
  forecast::AllocatorSettings recorded;
  recorded.expandable_segments = true;
  const auto settings = other.over(recorded);
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_EQ(settings.capacity, int64_t{8} << 30);
  EXPECT_EQ(settings.allowed, int64_t{4} << 30);
}

TEST(ReplayRowsTest, RefusesAFolderWithoutRecordings) {
  const base::TemporaryFolder folder;
  EXPECT_THROW(replay_streams({folder.path()}, {}), base::Error);
}

}  // namespace
}  // namespace lockstep::measure

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/beat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

Beat example() {
  Beat beat;
  beat.world = "5f0c";
  beat.rank = 3;
  beat.who = {"node7", "pid:[4026531836]", 4711, 123456789, ""};
  beat.beats = 61;
  beat.moves = 240;
  beat.step = 17;
  beat.phase = Phase::computing;
  beat.longest = 1.5;
  beat.call = "all-reduce";
  beat.calls = 412;
  beat.answered = 411;
  return beat;
}

TEST(BeatTest, ComesBackFromItsFileAsItWasWritten) {
  const base::TemporaryFolder folder;
  Beat beat = example();
  write_beat(folder.path() / "3.beat", beat);
  EXPECT_EQ(read_beat(folder.path() / "3.beat"), beat);
  beat.stopped = beat.call_failed = true;
  beat.calls_whole = false;
  beat.end = RankEnd{.code = 0, .signal = 9, .asked = true, .out_of_memory = true, .peak_bytes = int64_t{5} << 30};
  write_beat(folder.path() / "3.beat", beat);
  EXPECT_EQ(read_beat(folder.path() / "3.beat"), beat);
}

TEST(BeatTest, OneFlippedByteIsNoBeat) {
  const std::string record = to_record(example());
  for (const size_t at : {size_t{0}, size_t{9}, size_t{40}, record.size() - 2}) {
    std::string other = record;
    other[at] ^= 1;
    EXPECT_EQ(parse_record(other), std::nullopt) << at;
  }
  EXPECT_EQ(parse_record(record.substr(0, 100)), std::nullopt);
  EXPECT_EQ(parse_record(""), std::nullopt);
}

TEST(BeatTest, NoFileAndAnEmptyFileAreNoBeat) {
  const base::TemporaryFolder folder;
  EXPECT_EQ(read_beat(folder.path() / "none"), std::nullopt);
  base::write_file(folder.path() / "empty", "");
  EXPECT_EQ(read_beat(folder.path() / "empty"), std::nullopt);
}

TEST(BeatTest, AReaderNeverSeesAMixtureOfTwoBeats) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "0.beat";
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    Beat beat = example();
    for (int64_t i = 0; i < 2000; ++i) {
      beat.beats = beat.moves = beat.step = beat.calls = i * 1'000'003;
      write_beat(path, beat);
    }
    done = true;
  });
  int64_t read = 0;
  while (!done) {
    const auto beat = read_beat(path);
    if (!beat) continue;
    ++read;
    ASSERT_EQ(beat->beats, beat->moves);
    ASSERT_EQ(beat->beats, beat->calls);
  }
  EXPECT_GT(read, 0);
}

TEST(BeatTest, AFolderThatIsNotThereIsAMachineError) {
  EXPECT_THROW(write_beat("/nonexistent/0.beat", example()), base::Error);
}

}  // namespace
}  // namespace lockstep::run

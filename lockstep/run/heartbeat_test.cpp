// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/heartbeat.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

Heartbeat example() {
  Heartbeat heartbeat;
  heartbeat.world = "5f0c";
  heartbeat.rank = 3;
  heartbeat.who = {"node7", "pid:[4026531836]", 4711, 123456789, ""};
  heartbeat.count = 61;
  heartbeat.moves = 240;
  heartbeat.step = 17;
  heartbeat.phase = Phase::computing;
  heartbeat.longest = 1.5;
  heartbeat.call = "all-reduce";
  heartbeat.calls = 412;
  heartbeat.answered = 411;
  return heartbeat;
}

TEST(HeartbeatTest, ComesBackFromItsFileAsItWasWritten) {
  const base::TemporaryFolder folder;
  Heartbeat heartbeat = example();
  write_heartbeat(folder.path() / "3.heartbeat", heartbeat);
  EXPECT_EQ(read_heartbeat(folder.path() / "3.heartbeat"), heartbeat);
  heartbeat.stopped = heartbeat.call_failed = true;
  heartbeat.calls_whole = false;
  heartbeat.end = RankEnd{.code = 0, .signal = 9, .asked = true, .out_of_memory = true, .peak_bytes = int64_t{5} << 30};
  write_heartbeat(folder.path() / "3.heartbeat", heartbeat);
  EXPECT_EQ(read_heartbeat(folder.path() / "3.heartbeat"), heartbeat);
}

TEST(HeartbeatTest, OneFlippedByteIsNoHeartbeat) {
  const std::string record = to_record(example());
  for (const size_t at : {size_t{0}, size_t{9}, size_t{40}, record.size() - 2}) {
    std::string other = record;
    other[at] ^= 1;
    EXPECT_EQ(parse_record(other), std::nullopt) << at;
  }
  EXPECT_EQ(parse_record(record.substr(0, 100)), std::nullopt);
  EXPECT_EQ(parse_record(""), std::nullopt);
}

TEST(HeartbeatTest, NoFileAndAnEmptyFileAreNoHeartbeat) {
  const base::TemporaryFolder folder;
  EXPECT_EQ(read_heartbeat(folder.path() / "none"), std::nullopt);
  base::write_file(folder.path() / "empty", "");
  EXPECT_EQ(read_heartbeat(folder.path() / "empty"), std::nullopt);
}

TEST(HeartbeatTest, AReaderNeverSeesAMixtureOfTwoHeartbeats) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "0.heartbeat";
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    Heartbeat heartbeat = example();
    for (int64_t i = 0; i < 2000; ++i) {
      heartbeat.count = heartbeat.moves = heartbeat.step = heartbeat.calls = i * 1'000'003;
      write_heartbeat(path, heartbeat);
    }
    done = true;
  });
  int64_t read = 0;
  while (!done) {
    const auto heartbeat = read_heartbeat(path);
    if (!heartbeat) continue;
    ++read;
    ASSERT_EQ(heartbeat->count, heartbeat->moves);
    ASSERT_EQ(heartbeat->count, heartbeat->calls);
  }
  EXPECT_GT(read, 0);
}

TEST(HeartbeatTest, AFolderThatIsNotThereIsAMachineError) {
  EXPECT_THROW(write_heartbeat(base::TemporaryFolder().path() / "absent" / "0.heartbeat", example()), base::Error);
}

}  // namespace
}  // namespace lockstep::run

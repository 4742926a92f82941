// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

namespace lockstep::forecast {
namespace {

std::vector<AllocatorRecording> recorded_streams() {
  std::vector<AllocatorRecording> all;
  for (const auto& entry : std::filesystem::directory_iterator("results/recordings")) {
    if (entry.path().extension() == ".rec") all.push_back(read_allocator_recording(entry.path()));
  }
  return all;
}

// The proof of the rules: every block of every stream that a real H200 recorded lies at its recorded address.
TEST(ReplayTest, AgreesWithTheGpuToTheByteOnEveryRecordedStream) {
  const auto streams = recorded_streams();
  EXPECT_GE(streams.size(), 12u);
  int64_t num_expandable = 0;
  for (const auto& stream : streams) {
    const Replay found = replay(stream);
    const auto what = stream.title + " " + stream.precision;
    EXPECT_EQ(found.peaks, stream.peaks) << what;
    EXPECT_EQ(found.num_misplaced, 0) << what;
    EXPECT_EQ(found.num_segments_missed, 0) << what;
    EXPECT_FALSE(found.out_of_memory_at.has_value()) << what;
    num_expandable += stream.settings.expandable_segments;
  }
  EXPECT_GE(num_expandable, 4);
}

// Without the recorded addresses, as a forecast has to: the model of the driver decides the ties.
TEST(ReplayTest, StaysWithinAThousandthWithoutTheRecordedAddresses) {
  for (const auto& stream : recorded_streams()) {
    const Replay found = replay(stream, stream.settings, Addresses::modelled);
    const double ratio = static_cast<double>(found.peaks.reserved) / static_cast<double>(stream.peaks.reserved);
    EXPECT_LT(std::abs(ratio - 1), 1e-3) << stream.title << " " << stream.precision;
    EXPECT_EQ(found.peaks.requested, stream.peaks.requested);
  }
}

TEST(ReplayTest, SaysWhereAnotherGpuWouldHaveRunOut) {
  const auto stream = read_allocator_recording("results/recordings/resnet50-128-amp-sgd.rec");
  AllocatorSettings small = stream.settings;
  small.capacity = int64_t{8} << 30;
  EXPECT_FALSE(replay(stream, small, Addresses::modelled).out_of_memory_at.has_value());
  small.capacity = int64_t{4} << 30;
  const Replay found = replay(stream, small, Addresses::modelled);
  ASSERT_TRUE(found.out_of_memory_at.has_value());
  EXPECT_LE(found.peaks.reserved, small.capacity);
  EXPECT_GE(found.num_retries, 1);
}

TEST(ReplayTest, GivesTheExpandableModesPeakFromAStreamOfTheOtherMode) {
  const auto plain = read_allocator_recording("results/recordings/resnet50-128-amp-sgd.rec");
  const auto expandable = read_allocator_recording("results/recordings/resnet50-128-amp-sgd-expandable.rec");
  EXPECT_EQ(replay(plain, expandable.settings, Addresses::modelled).peaks, expandable.peaks);
  EXPECT_EQ(replay(expandable, plain.settings, Addresses::modelled).peaks.reserved, plain.peaks.reserved);
}

TEST(ReplayTest, EmptiesTheCacheOnceForARunOfReleases) {
  AllocatorRecording stream;
  AllocatorHistory history;
  constexpr int64_t kAt = int64_t{1} << 41;
  constexpr int64_t kSegment = int64_t{32} << 20;
  for (const int64_t i : {0, 1}) {
    history.add(AllocatorEventKind::segment_alloc, kAt + i * kSegment, kSegment, 77);
    history.add(AllocatorEventKind::alloc, kAt + i * kSegment, kSegment, 77);
  }
  for (const int64_t i : {0, 1}) {
    history.add(AllocatorEventKind::free_requested, kAt + i * kSegment, kSegment, 77);
    history.add(AllocatorEventKind::free_completed, kAt + i * kSegment, kSegment, 77);
  }
  for (const int64_t i : {0, 1}) history.add(AllocatorEventKind::segment_free, kAt + i * kSegment, kSegment, 77);
  stream.events = history.take();
  EXPECT_EQ(stream.events.size(), 8u);
  for (const auto addresses : {Addresses::recorded, Addresses::modelled}) {
    const Replay found = replay(stream, {}, addresses);
    EXPECT_EQ(found.peaks.reserved, 2 * kSegment);
    EXPECT_EQ(found.end, AllocatorPeaks{});
    EXPECT_EQ(found.num_segments_missed, 0);
  }
}

}  // namespace
}  // namespace lockstep::forecast

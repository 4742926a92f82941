// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/allocator_recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/recording_text.h"

namespace lockstep::forecast {
namespace {

using Kind = AllocatorEventKind;

AllocatorRecording small_stream() {
  AllocatorRecording recording;
  recording.source = "a test";
  recording.title = "net";
  recording.settings.expandable_segments = true;
  recording.settings.garbage_collection_threshold = 0.75;
  recording.peaks = {.allocated = 1024, .active = 2048, .reserved = 2 << 20, .requested = 1000};
  AllocatorHistory history;
  const int64_t at = int64_t{0x7f} << 40;
  history.add(Kind::segment_alloc, at, 2 << 20, 9000);
  history.add(Kind::alloc, at, 1000, 9000);
  history.add(Kind::alloc, at + 1024, 500, 9001);
  history.add(Kind::peaks_reset, 0, 0, 0);
  history.add(Kind::free_requested, at, 1000, 9000);
  history.add(Kind::free_requested, at + 1024, 500, 9001);
  history.add(Kind::free_completed, at + 1024, 500, 9001);
  history.add(Kind::free_completed, at, 1000, 9000);
  history.add(Kind::out_of_memory, 0, 1 << 30, 9000);
  history.add(Kind::segment_free, at, 2 << 20, 9000);
  recording.events = history.take();
  return recording;
}

std::string refusal(const std::string& from, const std::string& to) {
  std::string text = print_allocator_recording(small_stream());
  text.resize(text.rfind("sha256 "));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << text;
  try {
    parse_allocator_recording(seal_recording(text.replace(at, from.size(), to)), "a.rec");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "accepted";
}

TEST(AllocatorRecordingTest, JoinsTheTwoHalvesOfAFreeOnlyWhereNothingLiesBetween) {
  std::vector<Kind> kinds;
  for (const auto& event : small_stream().events) kinds.push_back(event.kind);
  EXPECT_THAT(kinds, testing::ElementsAre(Kind::segment_alloc, Kind::alloc, Kind::alloc, Kind::peaks_reset,
                                          Kind::free_requested, Kind::free, Kind::free_completed, Kind::out_of_memory,
                                          Kind::segment_free));
}

TEST(AllocatorRecordingTest, ReadsBackWhatItWrote) {
  const AllocatorRecording recording = small_stream();
  EXPECT_EQ(parse_allocator_recording(print_allocator_recording(recording), "a.rec"), recording);
  const base::TemporaryFolder folder;
  write_allocator_recording(folder.path() / "x.rec", recording);
  EXPECT_EQ(read_allocator_recording(folder.path() / "x.rec"), recording);
  EXPECT_EQ(kind_of_recording(folder.path() / "x.rec"), "allocator");
}

TEST(AllocatorRecordingTest, RefusesEventsThatCannotBe) {
  EXPECT_EQ(refusal(" f1", " f2"), "a.rec:2: block 0 is freed and was not in use");
  EXPECT_EQ(refusal(" f1", " f9"), "a.rec:2: block 9 is outside 1 .. 2");
  EXPECT_EQ(refusal(" c2", " c1"), "a.rec:2: block 1 is freed and was not asked back");
  EXPECT_EQ(refusal("a3e8@0", "a3e8"), "a.rec:2: an address is missing");
  EXPECT_EQ(refusal("a3e8@0", "a0@0"), "a.rec:2: size 0 is outside 1 .. 1125899906842624");
  EXPECT_EQ(refusal("a3e8@0", "z3e8@0"), "a.rec:2: unknown event 'z'");
  EXPECT_EQ(refusal("\"events\":9", "\"events\":8"), "a.rec:2: 9 events where the header says 8");
  EXPECT_THAT(refusal(":0.75", ":1.75"), testing::HasSubstr("not within 0 .. 1"));
}

TEST(AllocatorHistoryTest, RefusesToFreeWhatItNeverSaw) {
  AllocatorHistory history;
  EXPECT_THROW(history.add(Kind::free_requested, 512, 1, 0), base::Error);
}

}  // namespace
}  // namespace lockstep::forecast

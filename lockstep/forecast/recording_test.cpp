// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "lockstep/base/error.h"
#include "lockstep/forecast/recording_text.h"

namespace lockstep::forecast {
namespace {

Event storage(EventKind kind, int64_t id, int64_t bytes = 0, MemoryClass memory = MemoryClass::other) {
  Event event;
  event.kind = kind;
  event.id = id;
  event.bytes = bytes;
  event.memory = memory;
  return event;
}

Recording small_recording() {
  Recording recording;
  recording.source = "a test";
  recording.title = "net \"quoted\"";
  recording.micro_batch = 4;
  recording.parameters = 10;
  recording.steps = 1;
  recording.layout = Layout::contiguous;
  recording.estimated = {"aten::strange"};
  recording.blocks = {"stem", "layer1.0"};
  recording.operators = {{.name = "aten::mm",
                          .kind = OperatorClass::matmul,
                          .type = NumberType::bf16,
                          .phase = Phase::backward,
                          .flops = 1e18,
                          .bytes = 0.1,
                          .launches = 2,
                          .block = 1,
                          .shape = {1, 2, 3, 4}},
                         {.name = "aten::view", .kind = OperatorClass::view, .launches = 0, .shape = {}}};
  recording.events = {storage(EventKind::birth, 0, 40, MemoryClass::weights),
                      storage(EventKind::step_begin, 0),
                      storage(EventKind::birth, 3, 7, MemoryClass::averages),
                      storage(EventKind::run, 1),
                      storage(EventKind::death, 3),
                      storage(EventKind::collective, 5, 40),
                      storage(EventKind::wait, 5),
                      storage(EventKind::step_end, 0)};
  recording.events[3].thread = 1;
  recording.events[5].collective = CollectiveKind::reduce_scatter;
  return recording;
}

std::string refusal(std::string text, const std::string& from, const std::string& to) {
  text.resize(text.rfind("sha256 "));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  try {
    parse_recording(seal_recording(text.replace(at, from.size(), to)), "a.rec");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_FALSE(error.fix().empty());
    return error.what();
  }
  return "accepted";
}

TEST(RecordingTest, ReadsBackWhatItWrote) {
  const Recording recording = small_recording();
  EXPECT_EQ(parse_recording(print_recording(recording), "a.rec"), recording);
  const base::TemporaryFolder folder;
  write_recording(folder.path() / "x.rec", recording);
  EXPECT_EQ(read_recording(folder.path() / "x.rec"), recording);
}

TEST(RecordingTest, RefusesEventsThatCannotBe) {
  const std::string good = print_recording(small_recording());
  EXPECT_EQ(refusal(good, "\nd 3", "\nd 4"), "a.rec:10: storage 4 dies and was not alive");
  EXPECT_EQ(refusal(good, "b 3 7", "b 0 7"), "a.rec:6: storage 0 is born while it is still alive");
  EXPECT_EQ(refusal(good, "r 1", "r 2"), "a.rec:8: operator 2 runs; the recording lists 2");
  EXPECT_EQ(refusal(good, "w 5", "w 6"), "a.rec:12: collective 6 is waited for and was not started");
  EXPECT_EQ(refusal(good, "e 0", "s 1"), "a.rec:13: a step begins inside a step");
  EXPECT_EQ(refusal(good, "s 0", "e 0"), "a.rec:5: a step ends that did not begin");
  EXPECT_EQ(refusal(good, "3 7 v", "3 7 z"), "a.rec:6: unknown class of memory 'z'");
  EXPECT_EQ(refusal(good, "3 7 v", "3 -7 v"), "a.rec:6: number of bytes -7 is outside 0 .. 1125899906842624");
  EXPECT_EQ(refusal(good, "3 7 v", "3 7 v v"), "a.rec:6: 'v' is more than this line has");
  EXPECT_EQ(refusal(good, "\nw 5", "\nq 5"), "a.rec:12: unknown event 'q'");
  EXPECT_EQ(refusal(good, " matmul ", " matmull "), "a.rec:2: unknown kind of operator 'matmull'");
  EXPECT_EQ(refusal(good, "2 1 1,2,3,4", "2 2 1,2,3,4"), "a.rec:2: block 2 is outside -1 .. 1");
}

TEST(RecordingTest, RefusesCountsThatCannotBe) {
  const std::string good = print_recording(small_recording());
  EXPECT_THAT(refusal(good, "\"events\":8", "\"events\":9"), testing::HasSubstr("ends before its last event"));
  EXPECT_THAT(refusal(good, "\"events\":8", "\"events\":7"), testing::HasSubstr("more lines than the header counts"));
  EXPECT_THAT(refusal(good, "\"events\":8", "\"events\":99999999999"), testing::HasSubstr("is outside 0 .."));
  EXPECT_THAT(refusal(good, "\"operators\":2", "\"operators\":-1"), testing::HasSubstr("is outside 0 .."));
  EXPECT_THAT(refusal(good, "\"steps\":1", "\"steps\":2"), testing::HasSubstr("1 whole steps"));
  EXPECT_THAT(refusal(good, "\"ranks\":1", "\"rank\":1"), testing::HasSubstr("a.rec:1"));
}

TEST(RecordingTest, ReadsAHundredThousandEventsInATenthOfASecond) {
  Recording recording = small_recording();
  for (int64_t i = 0; i < 50000; ++i) {
    recording.events.push_back(storage(EventKind::birth, 100 + i, 1 << 20, MemoryClass::activations));
    recording.events.push_back(storage(EventKind::death, 100 + i));
  }
  const std::string text = print_recording(recording);
  const auto processor_seconds = [] {  // of this thread: others may have the machine meanwhile
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double start = processor_seconds();
  EXPECT_EQ(parse_recording(text, "a.rec").events.size(), recording.events.size());
  EXPECT_LT(processor_seconds() - start, 0.5);  // 0.03 s; the rest is for sanitizers
}

}  // namespace
}  // namespace lockstep::forecast

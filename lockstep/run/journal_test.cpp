// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lockstep/base/error.h"
#include "lockstep/run/small_disk.h"

namespace lockstep::run {
namespace {

using base::Json;

Json at_step(int64_t step) {
  Json fields = Json::object();
  fields["step"] = step;
  return fields;
}

std::vector<int64_t> steps_of(const std::vector<Json>& events) {
  std::vector<int64_t> steps;
  for (const auto& event : events) steps.push_back(event.at("step").as_int());
  return steps;
}

TEST(JournalTest, ReadsBackWhatItWrote) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  {
    Journal journal(path);
    journal.append("start", Json::object());
    journal.append("step", at_step(1));
  }
  const History history = read_journal(path);
  ASSERT_EQ(history.events.size(), 2U);
  EXPECT_EQ(history.skipped, 0);
  EXPECT_EQ(history.events[0].at("event").as_string(), "start");
  EXPECT_EQ(history.events[1].at("step").as_int(), 1);
  EXPECT_EQ(history.events[1].at("v").as_int(), 1);
  EXPECT_GT(history.events[1].at("t").as_double(), 1.6e9);
}

TEST(JournalTest, IsOneHistoryAcrossRestarts) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  for (int64_t step = 1; step <= 3; ++step) Journal(path).append("step", at_step(step));
  EXPECT_EQ(steps_of(read_journal(path).named("step")), (std::vector<int64_t>{1, 2, 3}));
}

TEST(JournalTest, ToleratesATornLineAndHealsItOnAppend) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal(path).append("step", at_step(1));
  const std::string whole = base::read_file(path);
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    base::write_file(path, whole + whole.substr(0, cut));
    EXPECT_EQ(read_journal(path).events.size(), cut + 1 == whole.size() ? 2U : 1U);
    Journal(path).append("step", at_step(2));
    const History history = read_journal(path);
    const bool only_the_end_was_torn = cut + 1 == whole.size();
    EXPECT_EQ(steps_of(history.named("step")),
              only_the_end_was_torn ? (std::vector<int64_t>{1, 1, 2}) : (std::vector<int64_t>{1, 2}))
        << "cut at " << cut;
    EXPECT_EQ(history.skipped, only_the_end_was_torn ? 0 : 1);
  }
}

TEST(JournalTest, ASecondWriterTakesNothingAwayFromTheFirst) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal first(path);
  first.append("step", at_step(1));
  const std::string whole = base::read_file(path);
  {
    base::FileWriter half(path, base::FileWriter::Mode::append);
    half.write(std::string_view(whole).substr(0, 20));
    Journal(path).append("step", at_step(2));  // as the login node sees it: half a line
    EXPECT_EQ(base::read_file(path).substr(0, whole.size() + 20), whole + whole.substr(0, 20));
  }
  first.append("step", at_step(3));
  EXPECT_EQ(steps_of(read_journal(path).named("step")), (std::vector<int64_t>{1, 2, 3}));
}

TEST(JournalTest, AFullDiskTearsNoLine) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  journal.append("step", at_step(1));
  {
    const SmallDisk full(std::filesystem::file_size(path) + 20);
    EXPECT_THROW(journal.append("step", at_step(2)), base::Error);
  }
  journal.append("step", at_step(3));
  const History history = read_journal(path);
  EXPECT_EQ(history.skipped, 0);
  EXPECT_EQ(steps_of(history.named("step")), (std::vector<int64_t>{1, 3}));
}

// What the handler below appends to, and with it.
struct {
  int file = -1;
  rlimit room{};
} other_writer;

// The disk has just been found full: another process finds room, and appends.
TEST(JournalTest, AFullDiskNeverTakesAnotherWritersLine) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  journal.append("step", at_step(1));
  {
    const SmallDisk full(std::filesystem::file_size(path) + 20);
    other_writer.file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    ::getrlimit(RLIMIT_FSIZE, &other_writer.room);
    other_writer.room.rlim_cur = other_writer.room.rlim_max;
    std::signal(SIGXFSZ, [](int) {
      static constexpr char kLine[] = "\n{\"v\":1,\"t\":1,\"event\":\"close\"}\n";
      ::setrlimit(RLIMIT_FSIZE, &other_writer.room);
      static_cast<void>(!::write(other_writer.file, kLine, sizeof kLine - 1));
    });
    EXPECT_THROW(journal.append("step", at_step(2)), base::Error);
    ::close(other_writer.file);
  }
  journal.append("step", at_step(3));
  const History history = read_journal(path);
  EXPECT_EQ(history.named("close").size(), 1U);
  EXPECT_EQ(steps_of(history.named("step")), (std::vector<int64_t>{1, 3}));
}

TEST(JournalTest, AWriterThatIsThereEndsATornLineToo) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  journal.append("step", at_step(1));
  base::FileWriter(path, base::FileWriter::Mode::append).write(std::string_view("{\"v\":1,\"t\":"));
  journal.append("step", at_step(2));
  EXPECT_EQ(steps_of(read_journal(path).named("step")), (std::vector<int64_t>{1, 2}));
}

TEST(JournalTest, SkipsLinesOfAnotherVersionAndOtherRubbish) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  base::write_file(path,
                   "{\"v\":2,\"t\":1,\"event\":\"step\"}\n[]\n7\n\xff\xfe\n{\"v\":1}\n"
                   "{\"v\":1,\"t\":1,\"event\":\"end\",\"step\":9}\n");
  const History history = read_journal(path);
  EXPECT_EQ(history.events.size(), 1U);
  EXPECT_EQ(history.skipped, 5);
}

TEST(JournalTest, StepsDoneAgainAfterACrashCountOnce) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  for (int64_t step = 1; step <= 5; ++step) journal.append("step", at_step(step));
  journal.append("evaluate", at_step(5));
  journal.append("resume", at_step(3));
  for (int64_t step = 4; step <= 6; ++step) journal.append("step", at_step(step));
  const History history = read_journal(path);
  EXPECT_EQ(steps_of(history.named("step")), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(history.named("evaluate").empty());
  EXPECT_EQ(history.events.size(), 10U);  // the file keeps them all
}

TEST(JournalTest, AnEvaluationMadeAgainBehindTheSameStepCountsOnce) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  for (int session = 0; session < 2; ++session) {
    journal.append("resume", at_step(4));
    Json fields = at_step(4);
    fields["split"] = "validate";
    fields["seconds"] = session;
    journal.append("evaluate", fields);
  }
  Json fields = at_step(4);
  fields["split"] = "test";
  journal.append("evaluate", fields);
  const auto evaluations = read_journal(path).named("evaluate");
  ASSERT_EQ(evaluations.size(), 2U);
  EXPECT_EQ(evaluations[0].at("seconds").as_int(), 1);
  EXPECT_EQ(evaluations[1].at("split").as_string(), "test");
}

TEST(JournalTest, ARewindMakesTheStepsBeyondItVoid) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  for (int64_t step = 1; step <= 5; ++step) journal.append("step", at_step(step));
  journal.append("rewind", at_step(2));
  for (int64_t step = 3; step <= 4; ++step) journal.append("step", at_step(step));
  const History history = read_journal(path);
  EXPECT_EQ(steps_of(history.named("step")), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(history.named("rewind").size(), 1U);
}

TEST(JournalTest, AStartFromTheBeginningMakesWhatWasBeforeVoid) {
  const base::TemporaryFolder folder;
  const auto path = folder.path() / "journal.jsonl";
  Journal journal(path);
  for (int session = 0; session < 2; ++session) {  // the first was killed before its first checkpoint
    journal.append("start", Json::object());
    journal.append("bad_sample", at_step(1));
    for (int64_t step = 1; step <= 2 + session; ++step) journal.append("step", at_step(step));
  }
  const History history = read_journal(path);
  EXPECT_EQ(steps_of(history.named("step")), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(history.named("start").size(), 1U);
  EXPECT_EQ(history.named("bad_sample").size(), 1U);
}

TEST(JournalTest, MissingJournalIsAUserError) {
  EXPECT_THROW(read_journal("no/such/journal.jsonl"), base::Error);
}

}  // namespace
}  // namespace lockstep::run

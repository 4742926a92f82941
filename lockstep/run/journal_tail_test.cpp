// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/journal_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/run/journal.h"

namespace lockstep::run {
namespace {

using testing::ElementsAre;

void put(const base::Path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::app) << bytes;
}

std::string step(int number) {
  return R"({"v":1,"t":1,"event":"step","step":)" + std::to_string(number) + "}";
}

TEST(JournalTailTest, TellsEachLineOnceAndWaitsForTheRestOfAHalfWrittenOne) {
  const base::TemporaryFolder temporary;
  const base::Path file = temporary.path() / "journal.jsonl";
  JournalTail tail(file);
  EXPECT_TRUE(tail.poll().events.empty());  // not there yet
  put(file, step(1) + "\n" + step(2).substr(0, 20));
  EXPECT_EQ(tail.poll().events.size(), 1U);
  EXPECT_TRUE(tail.poll().events.empty());
  put(file, step(2).substr(20) + "\n");
  const auto news = tail.poll();
  ASSERT_EQ(news.events.size(), 1U);
  EXPECT_EQ(news.events[0].int_or("step", 0), 2);
  EXPECT_FALSE(news.starts_over);
  EXPECT_EQ(tail.num_bad_lines(), 0);
}

TEST(JournalTailTest, NamesDamagedLinesAndTellsTheRest) {
  const base::TemporaryFolder temporary;
  const base::Path file = temporary.path() / "journal.jsonl";
  put(file,
      step(1) + "\n{\"v\":1,\"t\":\n" + step(2) + "\n\xff\xfe garbage\n{\"v\":9,\"event\":\"x\"}\n" + step(3) + "\n");
  JournalTail tail(file);
  EXPECT_EQ(tail.poll().events.size(), 3U);
  EXPECT_THAT(tail.bad_lines(), ElementsAre(2, 4, 5));
}

TEST(JournalTailTest, StartsOverWithAnotherFile) {
  const base::TemporaryFolder temporary;
  const base::Path file = temporary.path() / "journal.jsonl";
  put(file, step(1) + "\n" + step(2) + "\n");
  JournalTail tail(file);
  EXPECT_EQ(tail.poll().events.size(), 2U);
  base::write_file(file, step(7) + "\n");  // shorter, and another inode
  const auto news = tail.poll();
  EXPECT_TRUE(news.starts_over);
  ASSERT_EQ(news.events.size(), 1U);
  EXPECT_EQ(news.events[0].int_or("step", 0), 7);
}

}  // namespace
}  // namespace lockstep::run

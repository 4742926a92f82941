// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

using base::Blame;
using base::Error;
using base::text;

std::string lock_of(const std::string& host, int64_t pid, int64_t pid_start) {
  return text("{\"host\":\"", host, "\",\"pid_space\":\"x\",\"pid\":", pid, ",\"pid_start\":", pid_start,
              ",\"since\":\"yesterday\"}\n");
}

void age(const Path& path, int64_t seconds) {
  struct timespec times[2] = {{std::time(nullptr) - seconds, 0}, {std::time(nullptr) - seconds, 0}};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
}

TEST(RunFolderTest, IsMadeAndFreedAtTheEndOfTheScope) {
  const base::TemporaryFolder temporary;
  const Path root = temporary.path() / "runs" / "pets";
  {
    const RunFolder folder(root);
    EXPECT_TRUE(std::filesystem::exists(folder.paths().lock()));
    ASSERT_TRUE(read_holder(root));
    EXPECT_EQ(read_holder(root)->pid, ::getpid());
    folder.ensure_held();
  }
  EXPECT_FALSE(read_holder(root));
  EXPECT_FALSE(std::filesystem::exists(root));
}

TEST(RunFolderTest, AFolderThatItMadeAndNobodyUsedGoesAgain) {
  const base::TemporaryFolder folder;
  { const RunFolder unused(folder.path() / "run"); }
  EXPECT_FALSE(base::is_there(folder.path() / "run"));
  {
    const RunFolder used(folder.path() / "run");
    base::write_file(used.paths().job(), "{}");
  }
  EXPECT_TRUE(base::is_there(folder.path() / "run" / "job.json"));
  std::filesystem::remove(folder.path() / "run" / "job.json");
  { const RunFolder not_made(folder.path() / "run"); }
  EXPECT_TRUE(base::is_there(folder.path() / "run"));
}

TEST(RunFolderTest, SecondProcessIsToldHostAndPid) {
  const base::TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  try {
    const RunFolder second(temporary.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr(text("in use by process ", ::getpid(), " on host ")));
  }
}

TEST(RunFolderTest, LockOfAKilledProcessIsTakenOver) {
  const base::TemporaryFolder temporary;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder folder(temporary.path());
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(temporary.path() / "lock"));
  EXPECT_FALSE(read_holder(temporary.path()));
  const RunFolder folder(temporary.path());
  EXPECT_EQ(read_holder(temporary.path())->pid, ::getpid());
}

TEST(RunFolderTest, KilledProcessThatNobodyWaitedForIsNotTheHolder) {
  const base::TemporaryFolder temporary;
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder folder(temporary.path());
    ::raise(SIGKILL);
  }
  siginfo_t ended{};
  ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // it stays a zombie
  EXPECT_NO_THROW(RunFolder{temporary.path()});
  ::waitpid(child, nullptr, 0);
}

// Of a second for which the next one waits: the rest is for a busy machine.
constexpr std::chrono::milliseconds kStay{10};

TEST(RunFolderTest, WaitsAMomentForAHolderThatIsJustLeaving) {
  const base::TemporaryFolder temporary;
  auto first = std::make_unique<RunFolder>(temporary.path());
  std::jthread leaving([&] {
    std::this_thread::sleep_for(kStay);
    first.reset();
  });
  EXPECT_NO_THROW(RunFolder{temporary.path()});
}

TEST(RunFolderTest, WaitsForAHolderThatTakesTheFolderWithIt) {
  const base::TemporaryFolder temporary;
  const Path root = temporary.path() / "ranks";
  auto first = std::make_unique<RunFolder>(root);
  std::jthread leaving([&] {
    std::this_thread::sleep_for(kStay);
    first.reset();
    std::error_code held;
    while (!std::filesystem::remove(root, held) && !read_holder(root)) std::this_thread::yield();
  });
  const RunFolder second(root);
  second.ensure_held();
}

TEST(RunFolderTest, ReusedPidIsNotTheHolder) {
  const base::TemporaryFolder temporary;
  Holder us;
  {
    const RunFolder folder(temporary.path());
    us = *read_holder(temporary.path());
  }
  base::write_file(temporary.path() / "lock", text("{\"host\":\"", us.host, "\",\"pid_space\":\"", us.pid_space,
                                                   "\",\"pid\":", us.pid, ",\"pid_start\":", us.pid_start + 1, "}\n"));
  EXPECT_FALSE(read_holder(temporary.path()));
}

TEST(RunFolderTest, HolderOnAnotherHostIsKnownByItsHeartbeat) {
  const base::TemporaryFolder temporary;
  const Path lock = temporary.path() / "lock";
  base::write_file(lock, lock_of("node07", 4711, 1));
  {
    const std::jthread beating([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        ::utimensat(AT_FDCWD, lock.c_str(), nullptr, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      }
    });
    EXPECT_THROW(RunFolder{temporary.path()}, Error);
  }
  age(lock, static_cast<int64_t>(RunFolder::kStaleSeconds) + 5);
  EXPECT_NO_THROW(RunFolder{temporary.path()});
}

TEST(RunFolderTest, ASilentHolderOnAnotherHostIsWaitedForUntilItIsKnownToBeDead) {
  const base::TemporaryFolder temporary;
  base::write_file(temporary.path() / "lock", lock_of("node07", 4711, 1));
  age(temporary.path() / "lock", static_cast<int64_t>(RunFolder::kStaleSeconds) - 4);
  std::string told;
  EXPECT_NO_THROW(RunFolder(temporary.path(), [&](std::string_view line) { told = line; }));
  EXPECT_THAT(told, testing::HasSubstr("process 4711 on host node07 holds this run and is silent"));
}

TEST(RunFolderTest, AnEarlierStartOfTheSameSchedulersJobIsOver) {
  const base::TemporaryFolder temporary;
  base::write_file(temporary.path() / "lock",
                   R"({"host":"node07","pid_space":"x","pid":4711,"job":"42","restarts":0})");
  ::setenv("SLURM_JOB_ID", "42", 1);
  EXPECT_TRUE(read_holder(temporary.path()));  // this very start may have two processes
  ::setenv("SLURM_RESTART_COUNT", "1", 1);
  EXPECT_FALSE(read_holder(temporary.path()));
  EXPECT_NO_THROW(RunFolder{temporary.path()});
  ::unsetenv("SLURM_JOB_ID");
  ::unsetenv("SLURM_RESTART_COUNT");
}

TEST(RunFolderTest, UnreadableLockDoesNotBlockForEver) {
  const base::TemporaryFolder temporary;
  base::write_file(temporary.path() / "lock", "{\"host\":");
  EXPECT_NO_THROW(RunFolder{temporary.path()});
}

TEST(RunFolderTest, NoticesThatItLostTheLock) {
  const base::TemporaryFolder temporary;
  {
    const RunFolder folder(temporary.path());
    base::write_file(folder.paths().lock(), lock_of("node07", 4711, 1));
    EXPECT_THROW(folder.ensure_held(), Error);
  }
  EXPECT_TRUE(std::filesystem::exists(temporary.path() / "lock"));  // another's lock is not ours to remove
}

// Removed, and made again by a save that was under way.
TEST(RunFolderTest, AFolderThatWasRemovedWasNotTakenOver) {
  const base::TemporaryFolder temporary;
  const RunFolder folder(temporary.path() / "run");
  std::filesystem::remove_all(temporary.path() / "run");
  base::make_folders(temporary.path() / "run" / "checkpoints");
  try {
    folder.ensure_held();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("its lock is gone: the folder was removed, emptied or exchanged"));
    EXPECT_THAT(error.message(), testing::Not(testing::HasSubstr("took over")));
  }
}

TEST(RunFolderTest, AFolderThatWasMovedWasNotTakenOver) {
  const base::TemporaryFolder temporary;
  const RunFolder folder(temporary.path() / "run");
  std::filesystem::rename(temporary.path() / "run", temporary.path() / "moved");
  try {
    folder.ensure_held();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::machine);
    EXPECT_THAT(error.message(), testing::HasSubstr("run is gone: it was moved or removed"));
    EXPECT_THAT(error.message(), testing::HasSubstr("fix: move it back"));
  }
  std::filesystem::rename(temporary.path() / "moved", temporary.path() / "run");
  folder.ensure_held();
}

TEST(RunFolderTest, FolderThatCannotBeMadeIsAMachineError) {
  const base::TemporaryFolder temporary;
  base::write_file(temporary.path() / "file", "");
  try {
    const RunFolder folder(temporary.path() / "file" / "run");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::machine);
  }
}

TEST(RunFolderTest, ReadOnlyFolderIsAMachineError) {
  // The kernel's own read-only folder: root may write to any other, whatever its mode.
  try {
    const RunFolder folder("/proc/self");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::machine);
    EXPECT_THAT(error.what(), testing::HasSubstr("/proc/self/lock"));
  }
}

TEST(RunFolderTest, OpeningForReadingAsksForARun) {
  const base::TemporaryFolder temporary;
  EXPECT_THROW(open_run(temporary.path() / "none"), Error);
  EXPECT_THROW(open_run(temporary.path()), Error);
  base::write_file(temporary.path() / "journal.jsonl", "");
  EXPECT_EQ(open_run(temporary.path()).root, temporary.path());
}

TEST(RunFolderTest, ALockIsBrokenForItsDeadHolderOnly) {
  const base::TemporaryFolder temporary;
  const Path lock = RunPaths{temporary.path()}.lock();
  base::write_file(lock, lock_of("far-away", 4711, 99));
  break_lock(temporary.path(), {"far-away", "x", 4712, 99, ""});
  ASSERT_TRUE(read_holder(temporary.path()));  // another process of that host
  break_lock(temporary.path(), {"far-away", "x", 4711, 99, ""});
  EXPECT_FALSE(read_holder(temporary.path()));
  const RunFolder folder(temporary.path());  // at once, not after kStaleSeconds
  folder.ensure_held();
}

}  // namespace
}  // namespace lockstep::run

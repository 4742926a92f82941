// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::base {
namespace {

size_t entries(const Path& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.exists() ? 1 : 0;
  return count;
}

TEST(FileTest, ReadsWhatItWrote) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "one");
  write_file(folder.path() / "a", "two");
  EXPECT_EQ(read_file(folder.path() / "a"), "two");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(FileTest, MissingFileIsAUserError) {
  try {
    read_file("no/such/file");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::user);
    EXPECT_STREQ(error.what(), "no/such/file: there is no such file");
  }
  EXPECT_THROW(read_file("/"), Error);
}

// A file system that fails is not a bad file: who skips bad files must be able to tell.
TEST(FileTest, WhatIsNotThePathsFaultIsTheMachines) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "content");
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);  // EMFILE
  Blame blame = Blame::bug;
  try {
    read_file(folder.path() / "a");
  } catch (const Error& error) {
    blame = error.blame();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(blame, Blame::machine);
  for (const int code : {EIO, ESTALE, EMFILE, ENFILE, ENOMEM, EHOSTDOWN}) EXPECT_FALSE(blames_the_path(code)) << code;
  for (const int code : {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP}) EXPECT_TRUE(blames_the_path(code)) << code;
}

TEST(FileTest, ReadsInPiecesAndTellsWhenTheDiskFails) {
  const TemporaryFolder folder;
  const std::string whole(3'000'001, 'x');
  write_file(folder.path() / "a", whole);
  std::string got;
  read_in_pieces(folder.path() / "a", [&](std::span<const std::byte> piece) {
    got.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  EXPECT_EQ(got, whole);
  try {
    read_in_pieces("/proc/self/mem", [](std::span<const std::byte>) {});  // EIO: no page at 0
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::machine);
    EXPECT_STREQ(error.what(), "cannot read /proc/self/mem: Input/output error");
  }
  EXPECT_THROW(read_in_pieces(folder.path(), [](std::span<const std::byte>) {}), Error);
}

// As when a server loses it: a map would end the process by SIGBUS.
TEST(FileTest, AFileThatIsCutWhileItIsReadIsShorter) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", std::string(3'000'001, 'x'));
  size_t got = 0;
  read_in_pieces(folder.path() / "a", [&](std::span<const std::byte> piece) {
    got += piece.size();
    std::filesystem::resize_file(folder.path() / "a", 4096);
  });
  EXPECT_GE(got, 4096U);
  EXPECT_LT(got, 3'000'001U);
}

TEST(FileTest, ListsAFolderOrSaysThatItCannot) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_folder(folder.path() / "none").empty());
  make_synced_folders(folder.path() / "a" / "b");
  EXPECT_EQ(list_folder(folder.path()), std::vector<Path>{folder.path() / "a"});
  EXPECT_TRUE(is_there(folder.path() / "a" / "b"));
  EXPECT_FALSE(is_there(folder.path() / "a" / "c"));
  std::filesystem::create_symlink("loop", folder.path() / "loop");  // ELOOP: neither there nor absent
  for (const auto& ask : {+[](const Path& path) { is_there(path); }, +[](const Path& path) { list_folder(path); }}) {
    try {
      ask(folder.path() / "loop");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.blame(), Blame::machine);
    }
  }
}

TEST(FileTest, FailedWriteLeavesTheOldFileAlone) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "old");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);  // the kernel cuts the write short, as a full disk does
  EXPECT_THROW(write_file(folder.path() / "a", std::string(5000, 'x')), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(FileTest, MapsAWholeFile) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "mapped");
  const MappedFile map(folder.path() / "a");
  EXPECT_EQ(std::memcmp(map.bytes().data(), "mapped", 6), 0);
  EXPECT_EQ(map.bytes().size(), 6U);
}

TEST(FileTest, AppendsToAFile) {
  const TemporaryFolder folder;
  for (const char* line : {"a\n", "b\n"}) {
    FileWriter file(folder.path() / "log", FileWriter::Mode::append);
    file.write(line);
    file.close();
  }
  EXPECT_EQ(read_file(folder.path() / "log"), "a\nb\n");
}

TEST(FileTest, WritesIntoADeviceOrPipeInsteadOfReplacingIt) {
  const TemporaryFolder folder;
  const Path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  write_file(pipe, "words");
  char got[8] = "";
  EXPECT_EQ(::read(reader, got, sizeof got - 1), 5);
  ::close(reader);
  EXPECT_STREQ(got, "words");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

// Whoever can write to a shared folder can put links and pipes where a file of ours is expected.
TEST(FileTest, APlantedLinkIsNotFollowed) {
  const TemporaryFolder folder;
  const Path victim = folder.path() / "victim";
  write_file(victim, "untouched");
  for (const char* name : {"whole", "log", "part"}) std::filesystem::create_symlink(victim, folder.path() / name);
  write_file(folder.path() / "whole", "new");
  FileWriter(folder.path() / "part", FileWriter::Mode::truncate).write("new");
  EXPECT_EQ(read_file(folder.path() / "whole"), "new");
  EXPECT_EQ(read_file(folder.path() / "part"), "new");
  try {
    FileWriter(folder.path() / "log", FileWriter::Mode::append).write("new");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::user);
    EXPECT_NE(error.message().find("log: this is a link, a plain file is expected"), std::string::npos);
  }
  EXPECT_EQ(read_file(victim), "untouched");
}

TEST(FileTest, TheTemporaryNameCannotBeGuessed) {
  const TemporaryFolder folder;
  const Path old_name = folder.path() / ("a" + std::string(kTemporary) + std::to_string(::getpid()));
  write_file(folder.path() / "victim", "untouched");
  std::filesystem::create_symlink("victim", old_name);
  write_file(folder.path() / "a", "new");
  EXPECT_EQ(read_file(folder.path() / "victim"), "untouched");
  EXPECT_EQ(entries(folder.path()), 3U);
}

TEST(FileTest, APipeIsNotWaitedFor) {
  const TemporaryFolder folder;
  const Path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_file(pipe), Error);
  EXPECT_THROW(MappedFile{pipe}, Error);
  EXPECT_THROW(write_file(pipe, "words"), Error);
  EXPECT_THROW(FileWriter(pipe, FileWriter::Mode::append), Error);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_THROW(FileWriter(pipe, FileWriter::Mode::append), Error);
  ::close(reader);
}

// As on a node to which the variable came along from another.
TEST(FileTest, ATemporaryFolderThatIsNotThereIsNamedWithItsFix) {
  const TemporaryFolder folder;
  const char* told = std::getenv("TMPDIR");
  const std::string before = told ? told : "";
  ::setenv("TMPDIR", (folder.path() / "gone").c_str(), 1);
  try {
    const TemporaryFolder none;
    ADD_FAILURE() << none.path();
  } catch (const Error& error) {
    EXPECT_EQ(error.blame(), Blame::machine);
    EXPECT_THAT(error.message(), testing::HasSubstr("export TMPDIR="));
  }
  told ? ::setenv("TMPDIR", before.c_str(), 1) : ::unsetenv("TMPDIR");
}

TEST(FileTest, AShellsPipeIsRead) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "words", 5), 5);
  ::close(ends[1]);
  EXPECT_EQ(read_file("/dev/fd/" + std::to_string(ends[0])), "words");
  ::close(ends[0]);
}

}  // namespace
}  // namespace lockstep::base

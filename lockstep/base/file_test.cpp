// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace
}  // namespace lockstep::base

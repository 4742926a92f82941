// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/uring_door.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "lockstep/base/coroutine.h"
#include "lockstep/base/file.h"
#include "lockstep/loader/pread_ring.h"

namespace lockstep::loader {
namespace {

base::Detached read_into(ReadRing& ring, int file, std::span<std::byte> into, int64_t offset, int64_t& result) {
  result = co_await ring.read(file, into, offset);
}

class ReadRingTest : public testing::TestWithParam<bool> {  // io_uring, or threads with pread
 protected:
  ReadRingTest() : ring_(GetParam() ? make_uring(8) : make_pread_ring(4)) {
    std::string content;
    for (int i = 0; i < 4096; ++i) content.push_back(static_cast<char>(i / 16));
    base::write_file(folder_.path() / "file", content);
    file_ = ::open((folder_.path() / "file").c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~ReadRingTest() override { ::close(file_); }

  base::TemporaryFolder folder_;
  std::unique_ptr<ReadRing> ring_;
  int file_ = -1;
};

TEST_P(ReadRingTest, GivesEachReaderItsBytes) {
  if (!ring_) GTEST_SKIP() << "io_uring is denied here";
  std::vector<std::vector<std::byte>> memory(8, std::vector<std::byte>(16));
  std::vector<int64_t> results(8, -1);
  for (size_t i = 0; i < 8; ++i) read_into(*ring_, file_, memory[i], static_cast<int64_t>(i) * 160, results[i]);
  while (ring_->num_under_way() > 0) ring_->run_some();
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(results[i], 16);
    EXPECT_EQ(memory[i], std::vector<std::byte>(16, std::byte(10 * i)));
  }
}

TEST_P(ReadRingTest, TellsTheEndAndErrors) {
  if (!ring_) GTEST_SKIP() << "io_uring is denied here";
  std::vector<std::byte> memory(64);
  int64_t at_end = -1, beyond = -1, closed = 0;
  read_into(*ring_, file_, memory, 4090, at_end);
  while (ring_->num_under_way() > 0) ring_->run_some();
  read_into(*ring_, file_, memory, 5000, beyond);
  while (ring_->num_under_way() > 0) ring_->run_some();
  read_into(*ring_, -1, memory, 0, closed);
  while (ring_->num_under_way() > 0) ring_->run_some();
  EXPECT_EQ(at_end, 6);
  EXPECT_EQ(beyond, 0);
  EXPECT_EQ(closed, -EBADF);
}

INSTANTIATE_TEST_SUITE_P(Ways, ReadRingTest, testing::Values(true, false));

}  // namespace
}  // namespace lockstep::loader

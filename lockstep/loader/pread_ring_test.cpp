// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/pread_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "lockstep/base/coroutine.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::loader {
namespace {

base::Detached pread_into(ReadRing& ring, int file, std::span<std::byte> into, int64_t offset, int64_t& result) {
  result = co_await ring.read(file, into, offset);
}

// How many threads of this process have a name that begins so.
int64_t num_threads_named(const std::string& name) {
  int64_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    try {
      count += base::read_file(thread.path() / "comm").starts_with(name) ? 1 : 0;
    } catch (const base::Error&) {  // it ended between the listing and the look
    }
  }
  return count;
}

// A thread that was joined may still be listed for a moment.
bool no_thread_named(const std::string& name) {
  for (int i = 0; i < 6000 && num_threads_named(name) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return num_threads_named(name) == 0;
}

class PreadRingTest : public testing::Test {
 protected:
  PreadRingTest() {
    base::write_file(folder_.path() / "file", std::string(1 << 20, 'x'));
    file_ = ::open((folder_.path() / "file").c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~PreadRingTest() override { ::close(file_); }

  base::TemporaryFolder folder_;
  int file_ = -1;
};

TEST_F(PreadRingTest, ManyReadsAreUnderWayAtOnceOnBoundedThreads) {
  const auto ring = make_pread_ring(64);
  EXPECT_TRUE(no_thread_named("ls-pread-")) << "none before there is something to read";
  std::vector<std::vector<std::byte>> memory(200, std::vector<std::byte>(1 << 20));
  std::vector<int64_t> results(200, -1);
  for (size_t i = 0; i < 200; ++i) pread_into(*ring, file_, memory[i], 0, results[i]);
  EXPECT_EQ(ring->num_under_way(), 200);
  while (ring->num_under_way() > 0) ring->run_some();
  for (int i = 0; i < 6000 && num_threads_named("ls-pread-") < 2; ++i)  // the last ones may not have their names yet
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(num_threads_named("ls-pread-"), 2);
  EXPECT_LE(num_threads_named("ls-pread-"), 16);
  EXPECT_EQ(std::set<int64_t>(results.begin(), results.end()), std::set<int64_t>{1 << 20});
  EXPECT_EQ(memory[199].back(), std::byte{'x'});
}

TEST_F(PreadRingTest, ItsThreadsEndWithIt) {
  for (int i = 0; i < 20; ++i) {
    const auto ring = make_pread_ring(4);
    std::vector<std::byte> memory(1 << 16);
    int64_t result = -1;
    pread_into(*ring, file_, memory, 0, result);
    while (ring->num_under_way() > 0) ring->run_some();
    EXPECT_EQ(result, 1 << 16);
  }
  EXPECT_TRUE(no_thread_named("ls-pread-"));
}

}  // namespace
}  // namespace lockstep::loader

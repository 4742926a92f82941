// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/digest.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"

namespace lockstep::workflow {
namespace {

class DigestTest : public testing::Test {
 protected:
  // Young for as long as a test takes, however slow the disk is beneath it: modified an hour from now.
  void stay_young() const {
    struct timespec now {};
    ::clock_gettime(CLOCK_REALTIME, &now);
    modify_at({now.tv_sec + 3600, now.tv_nsec});
  }
  void modify_now() const { modify_at({0, UTIME_NOW}); }
  // A file cannot be made to look old: its inode remembers when it was touched. So these wait.
  static void grow_old() {
    const struct timespec nap { 2, 100'000'000 };
    ::nanosleep(&nap, nullptr);
  }
  void modify_at(const struct timespec& time) const {
    const struct timespec times[2] = {{0, UTIME_OMIT}, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, data_.c_str(), times, 0), 0);
  }

  base::TemporaryFolder folder_;
  base::Path cache_ = folder_.path() / "digests.jsonl";
  base::Path data_ = folder_.path() / "data";
};

TEST_F(DigestTest, SaysWhatAFileContainsAndWhetherItIsThere) {
  base::write_file(data_, "abc");
  Digests digests(cache_);
  EXPECT_EQ(digests.of(data_), base::sha256_hex(std::string_view("abc")));
  EXPECT_EQ(digests.of(folder_.path() / "absent"), "");
  EXPECT_THROW(digests.of("/dev/null"), base::Error);
}

TEST_F(DigestTest, AFolderIsItsNamesAndContents) {
  Digests digests(cache_);
  base::make_folders(data_ / "inner");
  base::write_file(data_ / "a", "1");
  base::write_file(data_ / "inner/b", "2");
  const std::string before = digests.of(data_);
  base::write_file(data_ / "inner/b", "3");
  const std::string other = digests.of(data_);
  EXPECT_NE(before, other);
  base::write_file(data_ / "inner/b", "2");
  EXPECT_EQ(digests.of(data_), before);
  std::filesystem::rename(data_ / "a", data_ / "c");
  EXPECT_NE(digests.of(data_), before);
  std::filesystem::create_directory_symlink("..", data_ / "round");  // does not go round in a circle
  EXPECT_NE(digests.of(data_), "");
}

TEST_F(DigestTest, ReadsAFileOnceItIsOldNoMore) {
  base::write_file(data_, "abc");
  stay_young();
  {
    Digests young(cache_);
    young.of(data_);
    young.of(data_);
    EXPECT_EQ(young.files_read(), 2);
  }
  modify_now();
  grow_old();
  {
    Digests old(cache_);
    old.of(data_);
    old.of(data_);
    EXPECT_EQ(old.files_read(), 1);
  }
  Digests nowhere(folder_.path() / "absent" / "digests.jsonl");  // what cannot be kept is read again
  EXPECT_EQ(nowhere.of(data_), base::sha256_hex(std::string_view("abc")));
  base::write_file(cache_, base::read_file(cache_) + "{\"path\": torn");
  Digests next(cache_);
  EXPECT_EQ(next.of(data_), base::sha256_hex(std::string_view("abc")));
  EXPECT_EQ(next.files_read(), 0);
  base::write_file(data_, "abd");  // the same size
  EXPECT_EQ(next.of(data_), base::sha256_hex(std::string_view("abd")));
}

}  // namespace
}  // namespace lockstep::workflow

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/mapping_guard.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "lockstep/base/file.h"

namespace lockstep::base {
namespace {

constexpr size_t kBytes = 64 << 10;

// Reads the last byte of a file that was emptied behind its map.
void read_what_is_gone(const Path& path) {
  std::signal(SIGBUS, SIG_DFL);  // a sanitizer's own handler gives way
  name_lost_mappings();
  const MappedFile other(path.parent_path() / "other");
  { const MappedFile left(path.parent_path() / "other"); }  // its entry is used again
  const MappedFile mapped(path);
  std::filesystem::resize_file(path, 0);
  const volatile std::byte* last = &mapped.bytes()[kBytes - 1];
  EXPECT_EQ(std::to_integer<int>(*last), 'x');  // not reached
}

TEST(MappingGuardTest, AFileThatWasShortenedIsNamed) {
  const TemporaryFolder folder;
  write_file(folder.path() / "index", std::string(kBytes, 'x'));
  write_file(folder.path() / "other", std::string(kBytes, 'x'));
  EXPECT_EXIT(read_what_is_gone(folder.path() / "index"), ::testing::ExitedWithCode(3),
              "machine error: .*/index: the file was shortened, or its disk failed, while it was read\n  fix: bring");
}

TEST(MappingGuardTest, AnotherBusErrorEndsTheProcessAsItWould) {
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);
        name_lost_mappings();
        std::raise(SIGBUS);
        std::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace lockstep::base

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::loader {
namespace {

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(FileStoreTest, ReadsAFileOfItsOwnPerSample) {
  const base::TemporaryFolder folder;
  base::make_folders(folder.path() / "cat");
  base::write_file(folder.path() / "cat/a.jpg", "first");
  base::write_file(folder.path() / "cat/b.jpg", "the second one");
  const Collection all = scan_folder(folder.path().string());
  const auto store = open_store(all);
  EXPECT_EQ(store->locate(1), (Location{.file = 1}));
  EXPECT_EQ(store->name(1), (folder.path() / "cat/b.jpg").string());
  std::vector<std::byte> memory;
  EXPECT_EQ(as_text(store->read(1, memory)), "the second one");
  EXPECT_EQ(as_text(store->read(0, memory)), "first");
  store->check(0, memory);  // nothing is known of them: nothing can be wrong
  std::filesystem::remove(folder.path() / "cat/a.jpg");
  EXPECT_THROW(store->read(0, memory), base::Error);
}

}  // namespace
}  // namespace lockstep::loader

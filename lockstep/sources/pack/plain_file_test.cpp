// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/plain_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"

namespace lockstep::sources {
namespace {

TEST(PlainFileTest, ReadsPartsAndSumsTheWhole) {
  const base::TemporaryFolder folder;
  std::string content(size_t{5} << 20, 'x');  // more than is read at once
  content.resize(size_t{9} << 20);
  base::write_file(folder.path() / "a", content);
  const PlainFile file(folder.path() / "a");
  EXPECT_EQ(file.size(), int64_t{9} << 20);
  EXPECT_EQ(file.read((5 << 20) - 1, 2), (std::vector<std::byte>{std::byte{'x'}, std::byte{0}}));
  EXPECT_EQ(file.crc32c(), base::crc32c(content));
  EXPECT_TRUE(file.has_zeros_from(5 << 20));
  EXPECT_FALSE(file.has_zeros_from((5 << 20) - 1));
}

TEST(PlainFileTest, NamesAFileThatIsAbsentOrShorterThanExpected) {
  const base::TemporaryFolder folder;
  EXPECT_THROW(PlainFile(folder.path() / "absent"), base::Error);
  base::write_file(folder.path() / "a", std::string(10'000, 'x'));
  const PlainFile file(folder.path() / "a");
  EXPECT_THROW(file.read(9'999, 2), base::Error);
  EXPECT_THROW(file.read(-1, 2), base::Error);
  std::filesystem::resize_file(folder.path() / "a", 100);
  try {
    file.crc32c();
    FAIL() << "a part was taken for the whole";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), testing::HasSubstr("a: it has become shorter while it was read"));
  }
}

}  // namespace
}  // namespace lockstep::sources

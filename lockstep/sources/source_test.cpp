// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::HasSubstr;

TEST(SourceTest, KnowsTheNamesOfParts) {
  EXPECT_EQ(part_named("train2017"), Part::train);
  EXPECT_EQ(part_named("Val"), Part::validate);
  EXPECT_EQ(part_named("validation"), Part::validate);
  EXPECT_EQ(part_named("testing"), Part::test);
  EXPECT_EQ(part_named("cat"), Part::open);
  EXPECT_EQ(part_named(""), Part::open);
}

TEST(SourceTest, SaysWhatItLookedFor) {
  const base::TemporaryFolder folder;
  const auto complaint = [&](const SourceOptions& options) {
    try {
      open_source(options);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.message();
    }
    return std::string("no complaint");
  };
  EXPECT_THAT(complaint({.path = folder.path() / "absent"}), HasSubstr("there is no such folder or file"));
  EXPECT_THAT(complaint({.path = folder.path()}), HasSubstr("the folder is empty"));
  EXPECT_THAT(complaint({.path = folder.path()}), HasSubstr("--format kitti, "));
  base::write_file(folder.path() / "my arrays.npz", "x");
  EXPECT_THAT(complaint({.path = folder.path()}), HasSubstr("my arrays.npz' -d DIR"));
  base::write_file(folder.path() / "1.jpg", "x");
  base::write_file(folder.path() / "2.PNG", "x");
  EXPECT_THAT(complaint({.path = folder.path()}), HasSubstr("2 images, and nothing says of which class"));
  EXPECT_THAT(complaint({.path = folder.path()}), HasSubstr("a folder of its name"));
  EXPECT_THAT(complaint({.path = folder.path() / "1.jpg"}), HasSubstr("an image, and nothing says of which class"));
  EXPECT_THAT(complaint({.path = folder.path(), .format = "foldr"}), HasSubstr("did you mean 'folder'"));
}

}  // namespace
}  // namespace lockstep::sources

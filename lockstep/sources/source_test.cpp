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
  EXPECT_THAT(complaint({.path = folder.path()}), HasSubstr("say which one with --format: "));
  EXPECT_THAT(complaint({.path = folder.path(), .format = "foldr"}), HasSubstr("did you mean 'folder'"));
}

}  // namespace
}  // namespace lockstep::sources

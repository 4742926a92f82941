// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/get/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"

namespace lockstep::verbs::get {
namespace {

TEST(SourcesTest, EveryRowSaysWhereFromUnderWhichLicenceAndHowToKnowIt) {
  std::set<std::string> names;
  for (const Source& source : known_sources()) {
    EXPECT_TRUE(names.insert(source.kind + " " + source.name).second) << source.name;
    EXPECT_TRUE(source.kind == "weights" || source.kind == "data") << source.name;
    EXPECT_FALSE(source.licence.empty()) << source.name;
    EXPECT_GT(source.megabytes, 0) << source.name;
    EXPECT_FALSE(source.files.empty()) << source.name;
    for (const SourceFile& file : source.files) {
      EXPECT_TRUE(file.sha256.size() == 64 || file.sha256.size() == 8 || file.md5.size() == 32) << source.name;
      EXPECT_TRUE(file.url.starts_with("https://") || (!source.package.empty() && !source.version.empty()));
      EXPECT_FALSE(file.name().empty());
    }
    if (source.kind == "weights") {
      EXPECT_EQ(source.files.size(), 1U) << source.name;
      EXPECT_EQ(source.mean.size(), 3U) << source.name;
      EXPECT_EQ(source.std.size(), 3U) << source.name;
      EXPECT_GT(source.image_size, 0) << source.name;
      EXPECT_GT(source.center_crop, 0.5) << source.name;
      EXPECT_LE(source.center_crop, 1) << source.name;
    }
  }
}

TEST(SourcesTest, APrefixOfTheChecksumIsTheOneInTheName) {
  for (const Source& source : known_sources()) {
    for (const SourceFile& file : source.files) {
      if (file.sha256.size() == 8) {
        EXPECT_THAT(file.name(), testing::HasSubstr("-" + file.sha256 + "."));
      }
    }
  }
}

TEST(SourcesTest, AnUnknownNameNamesTheNearest) {
  try {
    find_source(known_sources(), "weights", "resnet5O");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.fix(), testing::HasSubstr("resnet50"));
  }
  EXPECT_THROW(find_source(known_sources(), "music", "x"), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::get

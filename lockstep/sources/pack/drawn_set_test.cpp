// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/drawn_set.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/sources/pack/folder_state.h"

namespace lockstep::sources {
namespace {

base::Json described(int64_t count) {
  base::Json all = base::Json::object();
  all["format"] = 1;
  all["kind"] = "letters";
  all["count"] = count;
  return all;
}

TEST(DrawnSetTest, IsDrawnOnceAndKnownByItsDescription) {
  const base::TemporaryFolder folder;
  const Dataset empty{.folder = folder.path() / "set", .classes = {"a"}};
  EXPECT_FALSE(complete_set(empty, described(3)));
  const Dataset written = write_set(empty, described(3), [](Dataset& dataset, base::Json& file) {
    place_file(dataset.folder / "a", "letters");
    dataset.num_train = 3;
    dataset.fingerprint = "f00";
    file["train"] = dataset.num_train;
  });
  EXPECT_FALSE(written.was_complete);
  const auto found = complete_set(empty, described(3));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->was_complete);
  EXPECT_EQ(found->num_train, 3);
  EXPECT_EQ(found->fingerprint, "f00");
  EXPECT_THROW(complete_set(empty, described(4)), base::Error);
}

TEST(DrawnSetTest, OneThatWasInterruptedIsNotComplete) {
  const base::TemporaryFolder folder;
  const Dataset empty{.folder = folder.path() / "set", .classes = {}};
  const auto fail = [](Dataset& dataset, base::Json&) {
    place_file(dataset.folder / "a", "half");
    throw base::Error(base::Blame::machine, "the disk is full");
  };
  EXPECT_THROW(write_set(empty, described(3), fail), base::Error);
  EXPECT_FALSE(complete_set(empty, described(3)));
  EXPECT_FALSE(base::is_there(empty.folder / kDatasetComplete));
}

}  // namespace
}  // namespace lockstep::sources

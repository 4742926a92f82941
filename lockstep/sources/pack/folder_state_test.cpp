// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/folder_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using base::text;

TEST(FolderStateTest, TellsNothingBegunAndCompleteApart) {
  const base::TemporaryFolder folder;
  const base::Path to = folder.path() / "set";
  base::Json description = base::Json::object();
  description["kind"] = "shards";
  description["seed"] = 1;
  EXPECT_FALSE(is_complete(to, description));
  base::make_folders(to);
  EXPECT_FALSE(is_complete(to, description));
  base::write_json(to / kDatasetBegun, description);
  EXPECT_FALSE(is_complete(to, description));
  base::Json complete = description;
  complete["found"] = "later";
  base::write_json(to / kDatasetComplete, complete);
  EXPECT_TRUE(is_complete(to, description));
  description["seed"] = 2;
  try {
    is_complete(to, description);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the folder holds another dataset (seed)"));
  }
}

TEST(FolderStateTest, KnowsAnotherDatasetByAnOptionThatIsNoLongerGiven) {
  const base::TemporaryFolder folder;
  base::Json plain = base::Json::object(), ordered = plain;
  plain["seed"] = ordered["seed"] = 1;
  ordered["order"] = "the source's";
  const auto complaint = [&](const base::Json& description) {
    try {
      is_complete(folder.path(), description);
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string("no complaint");
  };
  for (const char* name : {kDatasetBegun, kDatasetComplete}) {
    base::write_json(folder.path() / name, ordered);
    EXPECT_EQ(is_complete(folder.path(), ordered), name == kDatasetComplete);
    EXPECT_THAT(complaint(plain), testing::HasSubstr("(order): it was \"the source's\" and is not given"));
    base::write_json(folder.path() / name, plain);
    EXPECT_THAT(complaint(ordered), testing::HasSubstr("(order): it was not given and is \"the source's\""));
  }
}

TEST(FolderStateTest, LeavesOtherPeoplesFoldersAlone) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "thesis.txt", "precious");
  EXPECT_THROW(is_complete(folder.path(), base::Json::object()), base::Error);
  EXPECT_THROW(is_complete(folder.path() / "thesis.txt", base::Json::object()), base::Error);
}

TEST(FolderStateTest, KnowsWhatAKillLeftOfItsFirstFile) {
  const base::TemporaryFolder folder;
  const base::Path torn = folder.path() / text(kDatasetBegun, ".tmp-4711");
  base::write_file(torn, "{\"ki");
  EXPECT_FALSE(is_complete(folder.path(), base::Json::object()));
  mark_begun(folder.path(), base::Json::object());
  remove_litter(folder.path());
  EXPECT_FALSE(std::filesystem::exists(torn));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / kDatasetBegun));
  unmark_begun(folder.path());
  unmark_begun(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FolderStateTest, PlacesAFileWhole) {
  const base::TemporaryFolder folder;
  place_file(folder.path() / "a", "one");
  place_file(folder.path() / "a", "two");
  EXPECT_EQ(base::read_file(folder.path() / "a"), "two");
  EXPECT_THROW(place_file(folder.path() / "absent/a", "x"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources

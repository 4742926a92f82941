// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/store/small_version.h"
#include "lockstep/store/store.h"
#include "lockstep/store/version.h"

namespace lockstep::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(VerifyTest, CountsWhatIsThereAndNamesEverythingThatIsNot) {
  const base::TemporaryFolder folder;
  const base::Path store = folder.path() / "store";
  const Version first = add(store, "pets", small_parts("a")), second = add(store, "pets", small_parts("b"));
  set_tag(store, "pets", "1", "production");
  Verified found = verify(store);
  EXPECT_EQ(found.versions, 2);
  EXPECT_EQ(found.names, 1);
  EXPECT_EQ(found.tags, 1);
  EXPECT_EQ(found.bytes, 6);
  EXPECT_THAT(found.damage, IsEmpty());
  EXPECT_THAT(found.notes, IsEmpty());

  write_version(store / "versions", small_parts("nobody's"));
  base::make_folders(store / "versions" / ".tmp-host-1-2");
  found = verify(store);
  EXPECT_THAT(found.damage, IsEmpty());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("no name has this version"), HasSubstr(".tmp-host-1-2")));

  base::write_file(first.weights(), "x");
  std::filesystem::remove_all(second.folder);
  base::write_file(store / "names/pets/tags/production/00000001.json", "{}");
  found = verify(store);
  EXPECT_THAT(found.damage, ElementsAre(HasSubstr("production/00000001.json is damaged"),
                                        HasSubstr(first.id + ": weights.safetensors has a wrong checksum"),
                                        HasSubstr(second.id + " is missing")));
}

TEST(VerifyTest, ATagThatPointsToNothingIsDamage) {
  const base::TemporaryFolder folder;
  const base::Path store = folder.path() / "store";
  add(store, "pets", small_parts("a"));
  add(store, "pets", small_parts("b"));
  set_tag(store, "pets", "2", "production");
  std::filesystem::remove(store / "names/pets/versions/00000002.json");
  EXPECT_THAT(verify(store).damage, ElementsAre(HasSubstr("entry 1 points to version 2 of 'pets', which has 1")));
}

}  // namespace
}  // namespace lockstep::store

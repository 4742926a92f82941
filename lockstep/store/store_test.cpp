// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/store/entries.h"
#include "lockstep/store/small_version.h"

namespace lockstep::store {
namespace {

using base::text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Complaint {
  int exit_code = 0;
  std::string message = {};
};

Complaint complaint(const std::function<void()>& act) {
  try {
    act();
    return {};
  } catch (const base::Error& error) {
    return {error.exit_code(), error.message()};
  }
}

class StoreTest : public testing::Test {
 protected:
  base::Path path() const { return folder_.path() / "store"; }
  Version add_small(const std::string& weights) const { return add(path(), "pets", small_parts(weights)); }

 private:
  base::TemporaryFolder folder_;
};

TEST_F(StoreTest, FindsAVersionByNumberTagIdAndAsTheNewest) {
  const Version first = add_small("a"), second = add_small("b");
  EXPECT_EQ(first.number, 1);
  EXPECT_EQ(second.number, 2);
  set_tag(path(), "pets", "1", "production");
  EXPECT_EQ(resolve(path(), "pets").id, second.id);
  EXPECT_EQ(resolve(path(), "pets:latest").id, second.id);
  EXPECT_EQ(resolve(path(), "pets:1").id, first.id);
  EXPECT_EQ(resolve(path(), "pets:production").id, first.id);
  EXPECT_THAT(resolve(path(), "pets:production").tags, ElementsAre("production"));
  EXPECT_EQ(resolve(path(), "pets:" + second.id.substr(0, 8)).id, second.id);
  EXPECT_EQ(id_of(path(), "pets:production"), first.id);
  EXPECT_EQ(base::read_file(resolve(path(), "pets:2").weights()), "b");
  EXPECT_THAT(names(path()), ElementsAre("pets"));
  check(second);
}

TEST_F(StoreTest, TheSameContentIsAddedOnceUnderEachName) {
  const Version first = add_small("a");
  EXPECT_EQ(add_small("a").number, 1);
  EXPECT_EQ(add(path(), "cats", small_parts("a")).id, first.id);
  EXPECT_EQ(versions(path(), "pets").size(), 1U);
  EXPECT_THAT(names(path()), ElementsAre("cats", "pets"));
}

TEST_F(StoreTest, ATagGoesBackAsOftenAsItWentForward) {
  for (const char* weights : {"a", "b", "c"}) set_tag(path(), "pets", text(add_small(weights).number), "production");
  EXPECT_EQ(id_of(path(), "pets:production"), resolve(path(), "pets:3").id);
  EXPECT_EQ(rollback(path(), "pets", "production").number, 2);
  EXPECT_EQ(rollback(path(), "pets", "production").number, 1);
  EXPECT_THAT(complaint([&] { rollback(path(), "pets", "production"); }).message, HasSubstr("none before it"));
  set_tag(path(), "pets", "3", "production");
  EXPECT_EQ(resolve(path(), "pets:production").number, 3);
  EXPECT_EQ(rollback(path(), "pets", "production").number, 1);
  EXPECT_THAT(versions(path(), "pets")[0].tags, ElementsAre("production"));
  EXPECT_THAT(versions(path(), "pets")[2].tags, IsEmpty());
}

TEST_F(StoreTest, WhatIsNotThereIsNamedWithWhatIs) {
  EXPECT_THAT(complaint([&] { resolve(path(), "pets"); }).message, HasSubstr("there is no store"));
  add_small("a");
  set_tag(path(), "pets", "1", "production");
  EXPECT_THAT(complaint([&] { resolve(path(), "pest"); }).message, HasSubstr("did you mean 'pets'"));
  EXPECT_THAT(complaint([&] { resolve(path(), "pets:prodution"); }).message, HasSubstr("did you mean 'production'"));
  EXPECT_THAT(complaint([&] { resolve(path(), "pets:7"); }).message, HasSubstr("no version '7'"));
  EXPECT_THAT(complaint([&] { resolve(path(), "pets:0123456789"); }).message, HasSubstr("begins with 0123456789"));
  EXPECT_EQ(complaint([&] { rollback(path(), "pets", "staging"); }).exit_code, 2);
  for (const char* name : {"", "..", "a/b", "-x", "a:b", "a b"}) {
    EXPECT_EQ(complaint([&] { add(path(), name, small_parts("a")); }).exit_code, 2) << name;
    EXPECT_EQ(complaint([&] { resolve(path(), name); }).exit_code, 2) << name;
  }
  for (const char* tag : {"", "12", "latest", "../x", "0123456789"}) {
    EXPECT_EQ(complaint([&] { set_tag(path(), "pets", "1", tag); }).exit_code, 2) << tag;
  }
}

TEST_F(StoreTest, ANameOrTagWhoseFirstWriterWasKilledIsNotThereYet) {
  add_small("a");
  base::make_folders(path() / "names" / "cats");
  base::make_folders(path() / "names" / "dogs" / "versions");
  base::make_folders(path() / "names" / "pets" / "tags" / "production");
  EXPECT_THAT(names(path()), ElementsAre("pets"));
  EXPECT_THAT(resolve(path(), "pets").tags, IsEmpty());
  EXPECT_EQ(complaint([&] { resolve(path(), "dogs"); }).exit_code, 2);
  EXPECT_EQ(complaint([&] { resolve(path(), "pets:production"); }).exit_code, 2);
  EXPECT_EQ(add(path(), "cats", small_parts("a")).number, 1);
}

TEST_F(StoreTest, ANameThatNobodyCouldHaveGivenHidesNoOther) {
  add_small("a");
  std::filesystem::copy(path() / "names" / "pets", path() / "names" / "\x1b]52;c;x\a",
                        std::filesystem::copy_options::recursive);
  EXPECT_THAT(names(path()), ElementsAre("pets"));
}

TEST_F(StoreTest, AFolderOfSomethingElseIsNoStore) {
  base::make_folders(path());
  base::write_file(path() / "thesis.tex", "years of work");
  EXPECT_THAT(complaint([&] { add_small("a"); }).message, HasSubstr("not empty (thesis.tex)"));
}

TEST_F(StoreTest, DamageIsTheMachinesAndNamesTheFile) {
  const Version version = add_small("weights");
  base::write_file(version.weights(), "weighty");
  const Complaint found = complaint([&] { check(resolve(path(), "pets")); });
  EXPECT_EQ(found.exit_code, 3);
  EXPECT_THAT(found.message, HasSubstr("(pets version 1) is damaged: weights.safetensors has a wrong checksum"));
  EXPECT_EQ(complaint([&] { set_tag(path(), "pets", "1", "production"); }).exit_code, 3);
  std::filesystem::remove(version.folder / "version.json");
  EXPECT_EQ(complaint([&] { resolve(path(), "pets"); }).exit_code, 3);
}

TEST_F(StoreTest, AnEntryLeadsNowhereElse) {
  const Version version = add_small("a");
  base::Json said = base::Json::object();
  said["version"] = "../../elsewhere/" + version.id;
  add_entry(path() / "names/pets/versions", 2, said);
  const Complaint found = complaint([&] { resolve(path(), "pets"); });
  EXPECT_EQ(found.exit_code, 3);
  EXPECT_THAT(found.message, HasSubstr("entry 2 of 'pets' names no version"));
}

TEST_F(StoreTest, WritersAtOnceLoseNothing) {
  constexpr int64_t kWriters = 4, kEach = 5;
  {
    std::vector<std::jthread> writers;
    writers.reserve(kWriters);
    for (int64_t writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([this, writer] {
        for (int64_t i = 0; i < kEach; ++i) {
          add_small(text("own ", writer, " ", i));
          add_small(text("common ", i));  // all of them add this one
          set_tag(path(), "pets", "latest", "production");
        }
      });
    }
  }
  EXPECT_EQ(versions(path(), "pets").size(), static_cast<size_t>(kWriters * kEach + kEach));
  const Verified verified = verify(path());
  EXPECT_THAT(verified.damage, IsEmpty());
  EXPECT_THAT(verified.notes, IsEmpty());
}

TEST_F(StoreTest, ASourceMayNameAVersion) {
  add_small("a");
  ::unsetenv("LOCKSTEP_STORE");
  const auto found = find_reference((path() / "pets:production").string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->store, path());
  EXPECT_EQ(found->name, "pets:production");
  EXPECT_FALSE(find_reference("pets:production"));
  EXPECT_FALSE(find_reference((path().parent_path() / "pets:production").string()));
  EXPECT_FALSE(find_reference(path().string()));
  ::setenv("LOCKSTEP_STORE", path().c_str(), 1);
  EXPECT_EQ(find_reference("pets:production")->store, path());
  EXPECT_FALSE(find_reference("runs/pets"));
  ::unsetenv("LOCKSTEP_STORE");
}

}  // namespace
}  // namespace lockstep::store

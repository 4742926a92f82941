// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::store {
namespace {

using base::Json;
using testing::HasSubstr;

Json saying(int64_t value) {
  Json said = Json::object();
  said["value"] = value;
  return said;
}

std::string complaint(const base::Path& folder) {
  try {
    read_entries(folder);
    return "";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    return error.what();
  }
}

TEST(EntriesTest, GivesBackWhatWasAddedAndANumberOnlyOnce) {
  const base::TemporaryFolder folder;
  const base::Path entries = folder.path() / "a" / "b";
  EXPECT_TRUE(read_entries(entries).empty());
  EXPECT_TRUE(read_last_entry(entries).empty());
  EXPECT_FALSE(has_entries(entries));
  EXPECT_TRUE(add_entry(entries, 1, saying(5)));
  EXPECT_FALSE(add_entry(entries, 1, saying(6)));
  EXPECT_TRUE(add_entry(entries, 2, saying(7)));
  const auto all = read_entries(entries);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(has_entries(entries));
  EXPECT_EQ(all[0].said.at("value").as_int(), 5);
  EXPECT_EQ(read_last_entry(entries).front().said.at("value").as_int(), 7);
  EXPECT_TRUE(leftovers(entries).empty());
}

TEST(EntriesTest, EveryFlippedByteIsNoticedAndNamed) {
  const base::TemporaryFolder folder;
  add_entry(folder.path(), 1, saying(5));
  const base::Path file = folder.path() / "00000001.json";
  const std::string good = base::read_file(file);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    base::write_file(file, bad);
    EXPECT_THAT(complaint(folder.path()), HasSubstr("00000001.json is damaged")) << i;
  }
  base::write_file(file, good.substr(0, good.size() / 2));
  EXPECT_THAT(complaint(folder.path()), HasSubstr("00000001.json is damaged"));
}

TEST(EntriesTest, AMissingOneIsNamed) {
  const base::TemporaryFolder folder;
  for (int64_t number = 1; number <= 3; ++number) add_entry(folder.path(), number, saying(number));
  std::filesystem::remove(folder.path() / "00000002.json");
  EXPECT_THAT(complaint(folder.path()), HasSubstr("00000002.json is missing"));
}

TEST(EntriesTest, WhatAKilledWriterLeftIsNoEntry) {
  const base::TemporaryFolder folder;
  add_entry(folder.path(), 1, saying(1));
  base::write_file(folder.path() / ".tmp-host-1-2", "half");
  EXPECT_EQ(read_entries(folder.path()).size(), 1U);
  EXPECT_EQ(leftovers(folder.path()), std::vector<base::Path>{folder.path() / ".tmp-host-1-2"});
}

TEST(EntriesTest, OfManyWritersAtOnceEachGetsANumberOfItsOwn) {
  const base::TemporaryFolder folder;
  constexpr int64_t kWriters = 4, kEach = 10;
  {
    std::vector<std::jthread> writers;
    writers.reserve(kWriters);
    for (int64_t writer = 0; writer < kWriters; ++writer) {
      writers.emplace_back([&folder, writer] {
        for (int64_t i = 0; i < kEach; ++i) {
          int64_t number = 1;
          while (!add_entry(folder.path(), number, saying(writer * kEach + i))) ++number;
        }
      });
    }
  }
  std::vector<int64_t> seen(kWriters * kEach, 0);
  const auto entries = read_entries(folder.path());
  ASSERT_EQ(entries.size(), seen.size());
  for (const Entry& entry : entries) ++seen[static_cast<size_t>(entry.said.at("value").as_int())];
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_TRUE(leftovers(folder.path()).empty());
}

}  // namespace
}  // namespace lockstep::store

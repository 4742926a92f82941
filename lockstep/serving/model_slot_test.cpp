// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/model_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/serving/small_model.h"

namespace lockstep::serving {
namespace {

using testing::HasSubstr;

TEST(ModelSlotTest, ReplacesTheModelWhenItsSourceChanges) {
  std::string there = "1";
  std::string said;
  ModelSlot slot({[&] { return there; }, [&] { return small_model(there); }}, std::chrono::milliseconds(0),
                 [&](const std::string& words) { said = words; });
  const auto first = slot.current();
  slot.look_now();
  EXPECT_EQ(slot.current(), first);
  there = "2";
  slot.look_now();
  EXPECT_EQ(slot.current()->version(), "2");
  EXPECT_EQ(first->version(), "1") << "who holds it goes on with it";
  EXPECT_EQ(slot.reloads(), 1);
  EXPECT_THAT(said, HasSubstr("version 2"));
}

TEST(ModelSlotTest, ABadModelChangesNothingAndIsTriedOnce) {
  std::string there = "1";
  int loads = 0;
  ModelSlot slot({[&] { return there; },
                  [&] {
                    ++loads;
                    if (there == "bad") throw std::runtime_error("damaged");
                    return small_model(there);
                  }},
                 std::chrono::milliseconds(0), [](const std::string&) {});
  there = "bad";
  slot.look_now();
  slot.look_now();
  EXPECT_EQ(slot.current()->version(), "1");
  EXPECT_EQ(slot.failures(), 1);
  EXPECT_EQ(loads, 2);
  there = "3";
  slot.look_now();
  EXPECT_EQ(slot.current()->version(), "3");
}

TEST(ModelSlotTest, OtherBytesOfTheSameModelReplaceNothing) {
  std::string there = "1";
  int loads = 0;
  ModelSlot slot({[&] { return there; }, [&] { return ++loads, small_model("1"); }}, std::chrono::milliseconds(0),
                 [](const std::string&) { FAIL(); });
  there = "2";
  slot.look_now();
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(slot.reloads(), 0);
}

// It may have the old tensors and the new version: then nothing would ever replace it.
TEST(ModelSlotTest, WhatIsReplacedWhileItIsLoadedIsLoadedAgain) {
  std::string there = "1";
  std::string next = "2";  // comes in the middle of a load
  std::vector<std::shared_ptr<const ServedModel>> loaded;
  ModelSlot slot({[&] { return there; },
                  [&] {
                    if (!next.empty()) there = std::exchange(next, "");
                    return loaded.emplace_back(small_model(there));
                  }},
                 std::chrono::milliseconds(0), [](const std::string&) {});
  ASSERT_EQ(loaded.size(), 2U);
  EXPECT_EQ(slot.current(), loaded[1]);
  there = "3";
  next = "4";
  slot.look_now();
  EXPECT_EQ(slot.current(), loaded[1]);
  slot.look_now();
  ASSERT_EQ(loaded.size(), 4U);
  EXPECT_EQ(slot.current(), loaded[3]);
  EXPECT_EQ(slot.reloads(), 1);
}

TEST(ModelSlotTest, ASourceThatNeverStandsStillIsServed) {
  int looks = 0;
  const ModelSlot slot({[&] { return std::to_string(++looks); }, [] { return small_model("1"); }},
                       std::chrono::milliseconds(0), [](const std::string&) { FAIL(); });
  EXPECT_EQ(slot.current()->version(), "1");
}

TEST(ModelSlotTest, LooksByItself) {
  std::atomic<int> there = 1;
  ModelSlot slot({[&] { return std::to_string(there); }, [&] { return small_model(std::to_string(there)); }},
                 std::chrono::milliseconds(1), [](const std::string&) {});
  there = 2;
  while (slot.current()->version() != "2") std::this_thread::yield();
}

TEST(ModelSlotTest, WithoutAFirstModelThereIsNoSlot) {
  EXPECT_THROW(ModelSlot({[] { return std::string(); },
                          []() -> std::shared_ptr<const ServedModel> { throw std::runtime_error("none"); }},
                         std::chrono::milliseconds(0), [](const std::string&) {}),
               std::runtime_error);
}

}  // namespace
}  // namespace lockstep::serving

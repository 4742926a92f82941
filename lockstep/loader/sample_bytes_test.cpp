// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/sample_bytes.h"

#include <gtest/gtest.h>

#include "lockstep/loader/fake_store.h"

namespace lockstep::loader {
namespace {

TEST(SampleBytesTest, ReadsIntoTheMemoryOfTheCallerWhereNothingIsReadAhead) {
  const FakeStore store;  // gives the memory as it is
  std::vector<std::byte> memory(5, std::byte{7});
  const SampleBytes bytes(store, nullptr, {.id = 3}, memory);
  const task::StoredSample sample = bytes.stored(2);
  EXPECT_EQ(sample.label, 2);
  EXPECT_EQ(sample.image.data(), memory.data());
  EXPECT_EQ(sample.image.size(), 5U);
  EXPECT_TRUE(sample.members.empty());
}

// loader_shards_test.cpp reads ahead.

}  // namespace
}  // namespace lockstep::loader

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::loader {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t total(const MemoryNeeds& needs, const MemoryShares& shares) {
  return shares.decoding + shares.files + shares.extents + (shares.num_batches + 1) * needs.batch;
}

TEST(BudgetTest, AllSharesTogetherStayWithinTheBudget) {
  for (const int64_t budget : {40, 64, 100, 500, 4096}) {
    for (const int64_t batch : {1, 3, 9}) {
      for (const int64_t window : {0, 8, 128}) {
        const MemoryNeeds needs{.memory = budget * kMiB,
                                .batch = batch * kMiB,
                                .threads = 2,
                                .largest_image = 3 * kMiB,
                                .largest_file = kMiB / 2,
                                .largest_extent = std::min<int64_t>(window, 8) * kMiB,
                                .window = window * kMiB};
        EXPECT_GE(share_memory(needs).extents, needs.largest_extent) << "one is always held";
        EXPECT_LE(total(needs, share_memory(needs)), needs.memory) << budget << " " << batch << " " << window;
      }
    }
  }
}

TEST(BudgetTest, AmpleMemoryGivesEverythingThatHelps) {
  const MemoryNeeds needs{.memory = 4096 * kMiB, .batch = 40 * kMiB, .prefetch = 4, .window = 128 * kMiB};
  EXPECT_EQ(share_memory(needs), (MemoryShares{kMiB, 256 * kMiB, 256 * kMiB, 4}));
}

TEST(BudgetTest, SaysHowMuchIsNeededWhenTwoBatchesDoNotFit) {
  try {
    share_memory({.memory = 100 * kMiB, .batch = 60 * kMiB});
    FAIL() << "too little was accepted";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("leaves this loader 100 MiB"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("data.memory=123MiB"));
  }
  EXPECT_THROW(
      share_memory({.memory = 123 * kMiB, .batch = 60 * kMiB, .largest_extent = 8 * kMiB, .window = 16 * kMiB}),
      base::Error);
  EXPECT_EQ(share_memory({.memory = 123 * kMiB, .batch = 60 * kMiB}).num_batches, 1);
}

}  // namespace
}  // namespace lockstep::loader

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader_needs.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::loader {
namespace {

LoaderOptions options_of(int64_t batch, int64_t ranks) {
  LoaderOptions options;
  options.data.image_size = 16;
  options.global_batch = batch;
  options.num_ranks = ranks;
  options.rank = ranks - 1;
  return options;
}

template <class Call>
std::string complaint_of(const Call& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.message();
  }
  return "";
}

TEST(LoaderNeedsTest, ARankHoldsItsShareOfABatch) {
  constexpr int64_t kLabel = 8, kSample = 16 * 16 * 3 * 4 + kLabel;
  EXPECT_EQ(loader_needs(options_of(10, 1), 100, nullptr, {}).batch, 10 * kSample);
  EXPECT_EQ(loader_needs(options_of(10, 4), 100, nullptr, {}).batch, 3 * kSample);
  EXPECT_EQ(loader_needs(options_of(10, 1), 7, nullptr, {}).batch, 7 * kSample);
  LoaderOptions bytes = options_of(10, 1);
  bytes.data.pixels = spec::Pixels::uint8;
  EXPECT_EQ(loader_needs(bytes, 100, nullptr, {}).batch, 10 * (16 * 16 * 3 + kLabel));
}

TEST(LoaderNeedsTest, SaysOfTheMemoryWhatTheLoaderWouldSay) {
  const Collection collection = synthetic_collection(100, 4);
  LoaderOptions options = options_of(64, 1);
  check_loader_memory(collection, options);
  options.data.memory = 2 << 20;
  const std::string told = complaint_of([&] { check_loader_memory(collection, options); });
  EXPECT_NE(told, "");
  EXPECT_EQ(told, complaint_of([&] { make_loader(collection, options, {.seed = options.seed}); }));
}

TEST(LoaderNeedsTest, CountsTheBatchesInFlightAndTheOneInUse) {
  const MemoryNeeds needs = loader_needs(options_of(10, 1), 100, nullptr, {});
  const MemoryShares shares = share_memory(needs);
  EXPECT_EQ(shares.num_batches, 4);
  EXPECT_EQ(loader_bytes(needs, shares, /*shards=*/false, 1000), 5 * needs.batch + shares.decoding + 1000);
  EXPECT_LE(loader_bytes(needs, shares, /*shards=*/true, 0), needs.memory);
}

}  // namespace
}  // namespace lockstep::loader

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/sync_check.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "lockstep/base/error.h"

namespace lockstep::training {
namespace {

// What each of three ranks hears; empty: nothing. `wrong` holds one bit of its second tensor that differs.
std::vector<std::string> heard_by_ranks(int64_t wrong) {
  auto groups = comm::thread_groups(3);
  std::vector<std::string> heard(3);
  std::vector<std::jthread> threads;
  for (size_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<model::Named> tensors{{"stem.weight", at::arange(12, at::kFloat).view({3, 4}).t()},
                                        {"head.bias", at::ones({5})}};
      if (static_cast<int64_t>(rank) == wrong) *(tensors[1].tensor.mutable_data_ptr<float>() + 3) += 1e-7F;
      try {
        check_sync(*groups[rank], tensors, 40);
      } catch (const base::Error& error) {
        EXPECT_EQ(error.blame(), base::Blame::machine);
        heard[rank] = error.message();
      }
    });
  }
  threads.clear();
  return heard;
}

TEST(SyncCheckTest, NamesTheRankTheStepAndTheTensorOnEveryRank) {
  for (const int64_t wrong : {0, 2}) {
    const std::string expected =
        base::Error(base::Blame::machine, "after step 40 rank " + std::to_string(wrong) + " of 3 no longer").message();
    for (const auto& message : heard_by_ranks(wrong)) {
      EXPECT_THAT(message, testing::HasSubstr(expected));
      EXPECT_THAT(message, testing::HasSubstr("the first that differs is 'head.bias'"));
    }
  }
}

int64_t fingerprint_of(const at::Tensor& tensor) {
  return fingerprints({{"weight", tensor}}).item<int64_t>();
}

TEST(SyncCheckTest, AFingerprintShowsOneBitAndTwoThatChangedPlaces) {
  const int64_t elements = (int64_t{1} << 20) + 5;  // more than are added up at once
  for (const auto type : {at::kFloat, at::kBFloat16, at::kLong, at::kByte}) {
    const at::Tensor weight = at::ones({elements}, type);
    const int64_t before = fingerprint_of(weight);
    EXPECT_EQ(fingerprint_of(weight.clone()), before);
    for (const int64_t at : {int64_t{0}, elements / 2, elements - 1}) {
      at::Tensor other = weight.clone();
      static_cast<uint8_t*>(other.mutable_data_ptr())[at * other.element_size()] ^= 1;
      EXPECT_NE(fingerprint_of(other), before) << type << " " << at;
      if (at == 0) continue;
      at::Tensor moved = weight.clone();
      static_cast<uint8_t*>(moved.mutable_data_ptr())[(at - 1) * moved.element_size()] ^= 1;
      EXPECT_NE(fingerprint_of(moved), fingerprint_of(other)) << type << " " << at;
    }
  }
}

TEST(SyncCheckTest, AFingerprintIsOfTheMemoryAsItLies) {
  const at::Tensor weight = at::arange(24, at::kFloat).view({2, 3, 4});
  EXPECT_EQ(fingerprint_of(weight), fingerprint_of(weight.transpose(0, 2)));
  EXPECT_EQ(fingerprint_of(weight.select(2, 1)), fingerprint_of(weight.select(2, 1).contiguous()));
  EXPECT_EQ(fingerprint_of(at::ones({0})), 0);
}

TEST(SyncCheckTest, SaysNothingWhenAllRanksHoldTheSame) {
  EXPECT_THAT(heard_by_ranks(-1), testing::Each(""));
}

}  // namespace
}  // namespace lockstep::training

// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "lockstep/base/error.h"
#include "lockstep/comm/group_contract.h"

namespace lockstep::comm {
namespace {

class ThreadContractTest : public ::testing::TestWithParam<std::tuple<ContractCase, int64_t>> {};

TEST_P(ThreadContractTest, Holds) {
  const auto& [contract, ranks] = GetParam();
  run_thread_ranks(ranks, [&](Group& group) { contract.run(group, c10::DeviceType::CPU); });
}

INSTANTIATE_TEST_SUITE_P(All, ThreadContractTest,
                         ::testing::Combine(::testing::ValuesIn(kGroupContract), ::testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "On" +
                                  std::to_string(std::get<1>(info.param));
                         });

class SingleContractTest : public ::testing::TestWithParam<ContractCase> {};

TEST_P(SingleContractTest, Holds) {
  GetParam().run(*single_group(), c10::DeviceType::CPU);
}

INSTANTIATE_TEST_SUITE_P(All, SingleContractTest, ::testing::ValuesIn(kGroupContract),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ThreadGroupTest, RanksMeetAtManyBarriers) {
  constexpr int kBarriers = 5000;
  std::atomic<int> met = 0;
  run_thread_ranks(4, [&](Group& group) {
    for (int i = 0; i < kBarriers; ++i) {
      ++met;
      group.barrier();
      EXPECT_GE(met, 4 * (i + 1));  // nobody is past a barrier that somebody has not reached
    }
  });
  EXPECT_EQ(met, 4 * kBarriers);
}

TEST(ThreadGroupTest, ARankThatIsGoneIsNamed) {
  try {
    run_thread_ranks(3, [](Group& group) {
      at::Tensor value = at::full({2}, 1.0);
      group.all_reduce_sum(value);
      if (group.rank() != 1) group.all_reduce_sum(value);
    });
    FAIL() << "nobody noticed";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 1 is gone"));
  }
}

TEST(ThreadGroupTest, AReceiverHearsThatItsSenderIsGone) {
  EXPECT_THROW(run_thread_ranks(2,
                                [](Group& group) {
                                  at::Tensor value = at::full({2}, 1.0);
                                  if (group.rank() == 0) group.receive(value, 1);
                                }),
               base::Error);
}

TEST(ThreadGroupTest, RanksThatDisagreeAreToldSo) {
  try {
    run_thread_ranks(2, [](Group& group) {
      at::Tensor value = at::full({2 + group.rank()}, 1.0);
      group.all_reduce_sum(value);
    });
    FAIL() << "nobody noticed";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 0 is in ALLREDUCE of 2 elements, rank 1 in"));
  }
}

TEST(ThreadGroupTest, TheFirstErrorOfARankIsTheOneThatIsThrown) {
  try {
    run_thread_ranks(4, [](Group& group) {
      if (group.rank() == 2) throw base::Error(base::Blame::user, "mine");
      group.barrier();
    });
    FAIL() << "nobody noticed";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("mine"));
  }
}

}  // namespace
}  // namespace lockstep::comm

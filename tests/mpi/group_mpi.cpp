// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lockstep/comm/group.h"
#include "lockstep/comm/group_contract.h"
#include "tests/mpi/ranks.h"

namespace lockstep::comm {

class MpiContractTest : public ::testing::TestWithParam<ContractCase> {};

TEST_P(MpiContractTest, Holds) {
  GetParam().run(mpi_test::ranks(), c10::DeviceType::CPU);
}

INSTANTIATE_TEST_SUITE_P(All, MpiContractTest, ::testing::ValuesIn(kGroupContract),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(MpiGroupTest, SpreadsTextsOfAnyLength) {
  Group& group = mpi_test::ranks();
  EXPECT_EQ(broadcast_text(group, group.rank() == 1 ? "from the second" : "", 1), "from the second");
  const auto all = gather_texts(group, std::string(static_cast<size_t>(group.rank()), 'x'));
  ASSERT_EQ(static_cast<int64_t>(all.size()), group.size());
  for (size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank], std::string(rank, 'x'));
}

TEST(MpiGroupTest, KnowsItsPlaceOnTheNode) {
  EXPECT_EQ(locality().size, mpi_test::ranks().size());
  EXPECT_EQ(locality().rank, mpi_test::ranks().rank());
}

TEST(MpiGroupTest, CountsTheSecondsItWaited) {
  Group& group = mpi_test::ranks();
  group.barrier();
  EXPECT_GT(group.seconds_waited(), 0);
}

}  // namespace lockstep::comm

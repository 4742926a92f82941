// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "lockstep/comm/group.h"
#include "tests/mpi/ranks.h"

namespace lockstep::comm {

TEST(MpiGroupTest, SumsEveryTypeOverTheRanks) {
  Group& group = mpi_test::ranks();
  const double sum = static_cast<double>(group.size() * (group.size() + 1) / 2);
  for (const auto type : {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kBFloat16}) {
    at::Tensor value = at::full({1000}, static_cast<double>(group.rank() + 1), at::TensorOptions(type));
    group.all_reduce_sum(value);
    EXPECT_TRUE(at::equal(value, at::full({1000}, sum, at::TensorOptions(type)))) << c10::toString(type);
  }
}

TEST(MpiGroupTest, BroadcastsFromAnyRoot) {
  Group& group = mpi_test::ranks();
  for (int64_t root = 0; root < group.size(); ++root) {
    at::Tensor value = at::full({17}, group.rank(), at::kLong);
    group.broadcast(value, root);
    EXPECT_TRUE(at::equal(value, at::full({17}, root, at::kLong)));
  }
}

TEST(MpiGroupTest, GathersOneTensorPerRankInOrder) {
  Group& group = mpi_test::ranks();
  const auto all = group.all_gather(at::arange(6, at::kFloat).view({2, 3}).add(static_cast<double>(group.rank())));
  ASSERT_EQ(static_cast<int64_t>(all.size()), group.size());
  for (int64_t r = 0; r < group.size(); ++r) {
    EXPECT_TRUE(at::equal(all[r], at::arange(6, at::kFloat).view({2, 3}).add(static_cast<double>(r))));
  }
}

TEST(MpiGroupTest, KeepsManyReductionsUnderWayAtOnce) {
  Group& group = mpi_test::ranks();
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  std::vector<at::Tensor> values;
  for (int i = 0; i < 20; ++i) {
    values.push_back(at::full({10000}, static_cast<double>(i)));
    std::vector<at::Tensor> one{values.back()};
    works.push_back(group.group()->allreduce(one));
  }
  for (int i = 19; i >= 0; --i) {
    works[i]->wait();
    EXPECT_EQ(values[i][9999].item<double>(), i * static_cast<double>(group.size()));
  }
}

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

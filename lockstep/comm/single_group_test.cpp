// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "lockstep/comm/group.h"

namespace lockstep::comm {

TEST(SingleGroupTest, LeavesEveryTensorAsItWas) {
  const auto group = single_group();
  at::Tensor value = at::full({3}, 2.0);
  group->all_reduce_sum(value);
  group->broadcast(value, 0);
  EXPECT_TRUE(at::equal(value, at::full({3}, 2.0)));
  const auto all = group->all_gather(value);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(at::equal(all[0], value));
  EXPECT_EQ(group->rank(), 0);
  EXPECT_EQ(group->size(), 1);
}

TEST(SingleGroupTest, ServesLibtorchAsAProcessGroup) {
  const auto group = single_group();
  std::vector<at::Tensor> tensors{at::full({2}, 5.0)};
  const auto work = group->group()->allreduce(tensors);
  EXPECT_TRUE(work->wait());
  EXPECT_EQ(tensors[0][0].item<double>(), 5.0);
}

}  // namespace lockstep::comm

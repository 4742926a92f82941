// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/max_pool.h"

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

TEST(MaxPoolTest, IsLibtorchs) {
  for (const PoolWindow& window :
       {PoolWindow{3, 2, 1, false}, PoolWindow{3, 2, 0, true}, PoolWindow{3, 1, 1, true}, PoolWindow{2, 2, 0, true}}) {
    for (const int64_t side : {5, 6, 7, 8}) {
      const at::Tensor x = at::randn({2, 8, side, side + 1}).contiguous(at::MemoryFormat::ChannelsLast);
      const at::Tensor one = x.clone().requires_grad_(true), other = x.clone().requires_grad_(true);
      const at::Tensor output = max_pool(one, window);
      const at::Tensor wanted = at::max_pool2d(other, window.size, window.stride, window.padding, 1, window.ceil);
      ASSERT_TRUE(output.equal(wanted));
      const at::Tensor push = at::randn(wanted.sizes());
      output.backward(push);
      wanted.backward(push);
      EXPECT_TRUE(one.grad().equal(other.grad()));
    }
  }
}

}  // namespace
}  // namespace lockstep::kernel

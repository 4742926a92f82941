// SPDX-License-Identifier: Apache-2.0
#include "lockstep/kernel/pixels.h"

#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace lockstep::kernel {
namespace {

TEST(PixelsTest, EachChannelHasItsNumbers) {
  const at::Tensor pixels = at::randint(256, {2, 3, 5, 3}, at::kByte);
  const at::Tensor wanted =
      pixels.to(at::kFloat).mul_(at::tensor({0.5F, 0.25F, 2.F})).add_(at::tensor({1.F, 0.F, -3.F}));
  EXPECT_TRUE(normalise(pixels, {0.5, 0.25, 2}, {1, 0, -3}).equal(wanted));
  EXPECT_FALSE(takes_normalise(pixels));  // a CPU keeps libtorch's
}

}  // namespace
}  // namespace lockstep::kernel

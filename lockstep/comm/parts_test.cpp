// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/parts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::comm {

TEST(PartsTest, AreEqualUnlessRowsAreGiven) {
  const at::Tensor whole = at::zeros({6, 2}, at::kFloat);
  EXPECT_EQ(part_bytes(whole, {}, 3), (std::vector<int64_t>{16, 16, 16}));
  EXPECT_EQ(part_bytes(whole, {1, 0, 5}, 3), (std::vector<int64_t>{8, 0, 40}));
}

TEST(PartsTest, MustMakeUpTheWhole) {
  const at::Tensor whole = at::zeros({6, 2}, at::kFloat);
  EXPECT_THROW(part_bytes(whole, {}, 5), base::Error);
  EXPECT_THROW(part_bytes(whole, {1, 2, 2}, 3), base::Error);
  EXPECT_THROW(part_bytes(whole, {3, 3}, 3), base::Error);
}

TEST(PartsTest, ACopyIsNoticedByNobody) {
  const at::Tensor from = at::arange(6, at::kFloat);
  const at::Tensor to = at::zeros({2, 3}, at::kFloat);
  const auto version = to._version();
  copy_bytes(from, to);
  EXPECT_TRUE(at::equal(to.view({6}), from));
  EXPECT_EQ(to._version(), version);
}

}  // namespace lockstep::comm

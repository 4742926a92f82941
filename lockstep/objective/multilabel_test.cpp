// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/multilabel.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::objective {
namespace {

TEST(MultilabelTest, SumsCrossEntropiesOfTheRowsThatHaveAPart) {
  at::Tensor output = at::tensor({0.0, 2.0, 5.0, 5.0}, at::kFloat).view({2, 2}).requires_grad_(true);
  const model::NamedTensors fields{{"label", at::tensor({1.0, 0.0, 0.0, 0.0}, at::kFloat).view({2, 2})},
                                   {"valid", at::tensor({1.0, 0.0}, at::kFloat)}};
  const auto multilabel = make_multilabel();
  const at::Tensor loss = multilabel->loss({{"output", output}}, fields, {});
  EXPECT_NEAR(loss.item<double>(), (std::log(2) + std::log1p(std::exp(2))) / 2, 1e-6);
  loss.backward();
  EXPECT_EQ(output.grad()[0][0].item<double>(), -0.25);
  EXPECT_EQ(output.grad()[1][0].item<double>(), 0);
  EXPECT_EQ(multilabel->sums({{"output", output}}, fields)[0].item<double>(), 0);  // 0 counts as not given
  EXPECT_EQ(multilabel->predicted({{"output", output}})[0].tensor[0][0].item<double>(), 0.5);
}

}  // namespace
}  // namespace lockstep::objective

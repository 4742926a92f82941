// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/regress.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace lockstep::objective {
namespace {

TEST(RegressTest, SumsSquaredErrorsOfTheRowsThatHaveAPart) {
  at::Tensor output = at::tensor({1.0, 5.0, 2.0}, at::kFloat).view({3, 1}).requires_grad_(true);
  const model::NamedTensors fields{{"value", at::tensor({0.0, 0.0, 4.0}, at::kFloat)},
                                   {"valid", at::tensor({1.0, 0.0, 1.0}, at::kFloat)}};
  const auto regress = make_regress();
  const at::Tensor loss = regress->loss({{"output", output}}, fields, {});
  EXPECT_EQ(loss.item<double>(), 1 + 4);
  loss.backward();
  EXPECT_EQ(output.grad()[1][0].item<double>(), 0);
  EXPECT_EQ(output.grad()[2][0].item<double>(), -4);
  EXPECT_EQ(regress->sums({{"output", output}}, fields)[0].item<double>(), 3);
}

}  // namespace
}  // namespace lockstep::objective

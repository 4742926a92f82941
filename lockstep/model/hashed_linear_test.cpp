// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "lockstep/model/network.h"

namespace lockstep::model {
namespace {

spec::Job reader() {
  spec::Job job;
  job.task = spec::Task::text;
  job.model.name = "hashed_linear";
  job.model.classes = 2;
  job.model.width = 3;
  job.text.buckets = 10;
  job.text.slots = 4;
  return job;
}

TEST(HashedLinearTest, IsALinearLayerOfTheMeanOfItsNgrams) {
  const Network network = make_network(reader());
  const auto all = network.parameters();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "ngrams.weight");
  EXPECT_EQ(all[0].tensor.sizes(), (std::vector<int64_t>{11, 3}));
  const at::Tensor tokens = at::tensor({2, 5, 5, 0, 0, 0, 0, 0}, at::kLong).view({2, 4});
  const at::Tensor output = network.forward({{"tokens", tokens}}, Mode::evaluate).at("output");
  const at::Tensor &table = all[0].tensor, &weight = all[1].tensor, &bias = all[2].tensor;
  const at::Tensor mean = (table[2] + 2 * table[5]) / 3;
  EXPECT_TRUE(output[0].allclose(at::linear(mean, weight, bias)));
  EXPECT_TRUE(output[1].allclose(bias));  // no n-gram: row 0 of the table has no part
}

TEST(HashedLinearTest, EmptySlotsLearnNothing) {
  const Network network = make_network(reader());
  for (const auto& parameter : network.parameters()) parameter.tensor.requires_grad_();
  const at::Tensor tokens = at::tensor({2, 0, 0, 0}, at::kLong).view({1, 4});
  network.forward({{"tokens", tokens}}, Mode::train).at("output").select(1, 0).sum().backward();
  const at::Tensor gradient = network.parameters()[0].tensor.grad();
  EXPECT_TRUE(gradient[2].ne(0).any().item<bool>());
  EXPECT_FALSE(gradient[0].ne(0).any().item<bool>());
  EXPECT_FALSE(gradient[5].ne(0).any().item<bool>());
}

}  // namespace
}  // namespace lockstep::model

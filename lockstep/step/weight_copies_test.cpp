// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/weight_copies.h"

#include <ATen/ops/equal.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "lockstep/step/precision.h"
#include "lockstep/step/tiny_network.h"

namespace lockstep::step {
namespace {

TEST(WeightCopiesTest, HasWhatAPassWouldCast) {
  const auto network = tiny::network();
  WeightCopies copies(network, spec::Precision::bf16, 0);
  copies.refresh();
  for (const auto& block : network.blocks()) {
    const auto cast = cast_parameters(*block);
    for (size_t i = 0; i < cast.size(); ++i) {
      const at::Tensor& weight = block->parameters[i].tensor;
      ASSERT_EQ(copies.of(weight).defined(), cast[i]) << block->parameters[i].name;
      if (cast[i]) {
        EXPECT_TRUE(at::equal(copies.of(weight), weight.to(at::kBFloat16)));
      }
      EXPECT_TRUE(copies.leaf(weight).is_leaf());
    }
  }
  EXPECT_TRUE(WeightCopies(network, spec::Precision::fp32, 0).empty());
}

TEST(WeightCopiesTest, WithAmpOnlyKernelsOfConvolutions) {
  const auto network = tiny::network();
  const WeightCopies copies(network, spec::Precision::amp, 0);
  for (const auto& parameter : network.parameters()) {
    EXPECT_EQ(copies.of(parameter.tensor).defined(), parameter.tensor.dim() == 4) << parameter.name;
  }
}

TEST(WeightCopiesTest, FollowsWhoeverElseWrites) {
  const auto network = tiny::network();
  WeightCopies copies(network, spec::Precision::bf16, 0);
  copies.refresh();
  for (const auto& parameter : network.parameters()) {
    const c10::AutoGradMode no_gradients(false);
    at::Tensor weight = parameter.tensor.detach();
    weight.fill_(3);
  }
  copies.refresh();
  for (const auto& parameter : network.parameters()) {
    const at::Tensor copy = copies.of(parameter.tensor);
    if (copy.defined()) {
      EXPECT_TRUE(copy.eq(3).all().item<bool>());
    }
  }
}

TEST(WeightCopiesTest, APassTakesThemInPlaceOfCasts) {
  const auto network = tiny::network();
  WeightCopies copies(network, spec::Precision::bf16, 0);
  const at::Tensor before = network.parameters().front().tensor;
  {
    const WeightCasts casts(network, spec::Precision::bf16, network.blocks().size(), &copies);
    for (const auto& block : network.blocks()) {
      for (const auto& parameter : block->parameters) EXPECT_TRUE(parameter.tensor.is_leaf()) << parameter.name;
    }
  }
  EXPECT_TRUE(network.parameters().front().tensor.is_same(before));
}

}  // namespace
}  // namespace lockstep::step

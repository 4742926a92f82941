// SPDX-License-Identifier: Apache-2.0
#include "lockstep/insight/heat_map.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/corrcoef.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::insight {
namespace {

model::Network network_named(const std::string& name, int64_t side, int64_t seed, int64_t width = 0) {
  spec::Model model;
  model.name = name;
  model.classes = 4;
  if (name.starts_with("vit")) {
    model.width = 24;
    model.depth = 3;
    model.heads = 2;
    model.patch = 4;
  }
  if (width > 0) model.width = width;
  return model::make_network(model, side, seed);
}

at::Tensor noise(int64_t rows, int64_t side) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  return at::randn({rows, 3, side, side}, generator);
}

double correlation(const at::Tensor& a, const at::Tensor& b) {
  const auto ranks = [](const at::Tensor& x) { return x.flatten().argsort().argsort().to(at::kFloat); };
  return at::corrcoef(at::stack({ranks(a), ranks(b)}))[0][1].item<double>();
}

// Adebayo et al., "Sanity checks for saliency maps" (2018): with other weights it must be another map, with the same
// weights the same one. Rank correlation, 4 images.
TEST(HeatMapTest, WithRandomWeightsItIsAnotherMap) {
  for (const std::string name : {"smallcnn", "vit_tiny_patch16_224"}) {
    const int64_t side = 32;
    const auto one = network_named(name, side, 1), same = network_named(name, side, 1),
               other = network_named(name, side, 2);
    const at::Tensor images = noise(4, side);
    const HeatMethod method = fitting_method(one, images);
    EXPECT_EQ(name_of(method), name == "smallcnn" ? "grad_cam" : "rollout");
    const at::Tensor map = heat_maps(one, images, {0, 1, 2, 3}, method);
    EXPECT_EQ(map.sizes(), (at::IntArrayRef{4, side, side}));
    EXPECT_TRUE(map.equal(heat_maps(same, images, {0, 1, 2, 3}, method)));
    EXPECT_LT(std::abs(correlation(map, heat_maps(other, images, {0, 1, 2, 3}, method))), 0.7) << name;
    EXPECT_GE(map.min().item<double>(), 0);
    EXPECT_LE(map.max().item<double>(), 1);
  }
}

TEST(HeatMapTest, GradCamSpeaksForAClass) {
  const auto network = network_named("smallcnn", 32, 3);
  const at::Tensor images = noise(1, 32);
  const c10::AutoGradMode off(false);  // as inside of an evaluation
  const at::Tensor first = heat_maps(network, images, {0}, HeatMethod::grad_cam);
  EXPECT_FALSE(first.equal(heat_maps(network, images, {1}, HeatMethod::grad_cam)));
}

// A linear network that looks at one square alone: covering anything else changes nothing.
TEST(HeatMapTest, OcclusionFindsThePixelsThatCount) {
  const auto network = network_named("linear", 14, 1);
  for (auto& parameter : network.parameters()) {
    at::Tensor weight = parameter.tensor.detach();
    weight.zero_();
    if (weight.dim() != 2) continue;
    at::Tensor seen = at::zeros({3, 14, 14});
    seen.narrow(1, 4, 2).narrow(2, 8, 2).fill_(1);
    weight[2].copy_(seen.flatten());
  }
  const at::Tensor images = at::ones({1, 3, 14, 14});
  EXPECT_EQ(fitting_method(network, images), HeatMethod::occlusion);
  const at::Tensor map = heat_maps(network, images, {2}, HeatMethod::occlusion)[0];
  EXPECT_GT(map[4][8].item<double>(), 0.5);
  EXPECT_EQ(map[12][1].item<double>(), 0);
  EXPECT_THROW(heat_maps(network, images, {2}, HeatMethod::grad_cam), base::Error);
  EXPECT_THROW(heat_maps(network, images, {2}, HeatMethod::rollout), base::Error);
  EXPECT_THROW(heat_method_named("saliency"), base::Error);
}

}  // namespace
}  // namespace lockstep::insight

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/precision.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "lockstep/step/tiny_network.h"

namespace lockstep::step {

TEST(WeightCastsTest, CastsMatricesAndKernelsAndKeepsNormsInFloat) {
  const auto network = tiny::network();
  {
    const WeightCasts casts(network, spec::Precision::bf16);
    for (const auto& parameter : network.parameters()) {
      const bool norm = parameter.name.find(".norm.") != std::string::npos;
      EXPECT_EQ(parameter.tensor.scalar_type(), norm ? at::kFloat : at::kBFloat16) << parameter.name;
    }
  }
  for (const auto& parameter : network.parameters()) EXPECT_EQ(parameter.tensor.scalar_type(), at::kFloat);
}

TEST(WeightCastsTest, WithFloatNothingIsExchanged) {
  const auto network = tiny::network();
  const at::Tensor before = network.parameters()[0].tensor;
  const WeightCasts casts(network, spec::Precision::fp32);
  EXPECT_TRUE(network.parameters()[0].tensor.is_same(before));
}

TEST(PassPrecisionTest, AmpRunsConvolutionsInBfloatOnTheCpuAndEndsWithItsScope) {
  const auto network = tiny::network();
  const at::Tensor values = at::ones({1, 3, 4, 4});
  const at::Tensor kernel = at::ones({2, 3, 1, 1});
  {
    const PassPrecision precision(network, spec::Precision::amp, at::kCPU);
    EXPECT_EQ(at::conv2d(values, kernel).scalar_type(), at::kBFloat16);
    EXPECT_EQ(network.parameters()[0].tensor.scalar_type(), at::kFloat);
  }
  EXPECT_EQ(at::conv2d(values, kernel).scalar_type(), at::kFloat);
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

TEST(PassPrecisionTest, OnlyTf32LetsFloatProductsUseTensorCores) {
  const auto network = tiny::network();
  for (const auto precision : {spec::Precision::tf32, spec::Precision::fp32, spec::Precision::bf16}) {
    const PassPrecision scope(network, precision, at::kCPU);
    EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), precision == spec::Precision::tf32);
    EXPECT_EQ(at::globalContext().allowTF32CuDNN(), precision == spec::Precision::tf32);
  }
}

}  // namespace lockstep::step

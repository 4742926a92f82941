// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/precision.h"

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

}  // namespace lockstep::step

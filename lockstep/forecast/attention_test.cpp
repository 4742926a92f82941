// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/attention.h"

#include <gtest/gtest.h>

#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"

namespace lockstep::forecast {
namespace {

TEST(AttentionTest, TheGenerationAndThePrecisionDecideTheKernel) {
  const auto catalogue = catalogue::load_embedded();
  const auto of = [&](const char* gpu, const char* precision) {
    return choose_attention(&catalogue.gpu(gpu), precision);
  };
  for (const char* hopper : {"h100", "h200", "gh200", "b200"}) {
    EXPECT_EQ(of(hopper, "bf16"), Attention::cudnn) << hopper;
    EXPECT_EQ(of(hopper, "amp"), Attention::cudnn) << hopper;
    EXPECT_EQ(of(hopper, "tf32"), Attention::efficient) << hopper;
  }
  for (const char* other : {"a100-80", "rtx3090", "l40s", "rtx5090", "mi300x"}) {
    EXPECT_EQ(of(other, "bf16"), Attention::flash) << other;
    EXPECT_EQ(of(other, "fp32"), Attention::efficient) << other;
  }
  EXPECT_EQ(of("v100-32", "amp"), Attention::efficient);
  EXPECT_EQ(of("v100-32", "bf16"), Attention::math);
  EXPECT_EQ(of("t4", "fp32"), Attention::efficient);
  EXPECT_EQ(of("k40", "fp32"), Attention::math);
  EXPECT_EQ(choose_attention(nullptr, "fp32"), Attention::math);
}

// The rows were measured on the GPU itself: what it ran is what the rule says.
TEST(AttentionTest, TheCalibratedGpuRanWhatTheRuleSays) {
  const auto catalogue = catalogue::load_embedded();
  int64_t compared = 0;
  const Calibration calibration = load_calibration();
  for (const auto& device : calibration.devices()) {
    if (device.rates.id != "h200") continue;
    for (const auto& sample : device.samples) {
      const auto kind = sample.op.kind;
      if (kind != OperatorClass::attention && kind != OperatorClass::attention_gradient) continue;
      const std::string precision = sample.op.type == NumberType::fp16 ? "amp" : name_of(sample.op.type);
      const std::string kernel = name_of(choose_attention(&catalogue.gpu("h200"), precision));
      EXPECT_NE(sample.op.name.find("_" + kernel + "_"), std::string::npos) << sample.op.name << " " << precision;
      ++compared;
    }
  }
  EXPECT_GE(compared, 80);
}

}  // namespace
}  // namespace lockstep::forecast

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::verbs::train {
namespace {

using ::testing::HasSubstr;

spec::PlanOption option_of(int64_t gpus, bool fits, std::vector<std::string> set) {
  spec::PlanOption option;
  option.gpus = gpus;
  option.fits = fits;
  option.as_written = set.empty();
  option.set = std::move(set);
  option.memory.total = 12'000'000'000;
  return option;
}

TEST(OutOfMemoryTest, NamesTheSettingsThatFit) {
  spec::Plan plan;
  plan.options = {option_of(1, false, {}), option_of(2, true, {}), option_of(1, true, {"training.micro_batch=64"})};
  EXPECT_THAT(what_would_fit(plan, 1), HasSubstr("--set training.micro_batch=64 (it needs"));
}

TEST(OutOfMemoryTest, ASettingCanBePasted) {
  spec::Plan plan;
  plan.options = {option_of(1, true, {R"(training.recompute=["layer1","layer2"])", "training.micro_batch=8"})};
  EXPECT_THAT(what_would_fit(plan, 1),
              HasSubstr(R"(--set 'training.recompute=["layer1","layer2"]' --set training.micro_batch=8 ()"));
}

TEST(OutOfMemoryTest, AJobThatFitsByItselfHasCompany) {
  spec::Plan plan;
  plan.options = {option_of(1, true, {})};
  EXPECT_THAT(what_would_fit(plan, 1), HasSubstr("who else uses the GPU"));
  EXPECT_EQ(what_would_fit(plan, 4), "");
}

}  // namespace
}  // namespace lockstep::verbs::train

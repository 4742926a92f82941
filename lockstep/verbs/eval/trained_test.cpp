// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/trained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/weights.h"
#include "lockstep/run/folder.h"
#include "lockstep/verbs/eval/small_run.h"

namespace lockstep::verbs {
namespace {

using testing::HasSubstr;

std::string complaint(const TrainedOptions& options) {
  try {
    load_trained(options);
    return "";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.message();
  }
}

TEST(TrainedTest, LoadsARunWithItsClasses) {
  const SmallRun small;
  const Trained trained = load_trained({small.run()});
  EXPECT_EQ(trained.classes, small.classes());
  EXPECT_EQ(trained.weights, small.run() / "weights.safetensors");
  EXPECT_EQ(trained.network.name(), small.job().model.name);
}

TEST(TrainedTest, TakesTheClassNamesFromTheTrainingDataWhenTheRunHasNone) {
  const SmallRun small;
  std::filesystem::remove(run::RunPaths{small.run()}.classes());
  EXPECT_EQ(load_trained({small.run()}).classes, small.classes());
}

TEST(TrainedTest, LoadsAWeightsFileBesideItsJob) {
  const SmallRun small;
  const Trained trained = load_trained({small.run() / "weights.safetensors"});
  EXPECT_TRUE(trained.run.empty());
  EXPECT_EQ(trained.classes, small.classes());
}

TEST(TrainedTest, OverridesTheJob) {
  const SmallRun small;
  EXPECT_EQ(load_trained({small.run(), {}, {"data.center_crop=1"}}).job.data.center_crop, 1);
}

TEST(TrainedTest, SaysWhatIsMissing) {
  const SmallRun small;
  EXPECT_THAT(complaint({small.run() / "nothing"}), HasSubstr("there is no such run folder or weights file"));
  std::filesystem::rename(small.run() / "weights.safetensors", small.root() / "alone.safetensors");
  EXPECT_THAT(complaint({small.root() / "alone.safetensors"}), HasSubstr("--job JOB.json"));
  EXPECT_THAT(complaint({small.run()}), HasSubstr("no weights yet, and no good checkpoint"));
}

TEST(TrainedTest, RefusesWeightsOfAnotherClassCount) {
  const SmallRun small;
  base::write_json(run::RunPaths{small.run()}.classes(), base::Json::array_of(std::vector<std::string>{"a", "b", "c"}));
  EXPECT_THAT(complaint({small.run()}), HasSubstr("another number of classes than 3"));
}

}  // namespace
}  // namespace lockstep::verbs

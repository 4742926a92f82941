// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/trial_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::tune {
namespace {

using testing::HasSubstr;

class TrialStartTest : public testing::Test {
 protected:
  TrialStartTest() {
    options_.study =
        spec::parse_study(base::parse_json(R"({"space": {"training.seed": {"range": [1, 9]}}})", "study.json"));
    options_.folder = folder_.path();
    trial_.number = 7;
    trial_.values = {{"training.seed", 3}};
  }
  TrialEnd run_to_end() {
    const Space space = make_space(options_.study, nullptr);
    const auto run = start_trial(options_, space, {.gpus = {"2", "3"}}, trial_, false);
    while (!run->poll()) wait_for({&run->child()}, 0.1);
    return run->end();
  }
  base::TemporaryFolder folder_;
  StudyOptions options_;
  Trial trial_;
};

TEST_F(TrialStartTest, AProgramGetsItsValuesAndItsGpus) {
  options_.program = {"sh", "-c",      "test \"$CUDA_VISIBLE_DEVICES\" = 2,3 && echo $1$2",
                      "sh", "{trial}", "{training.seed}"};
  const TrialEnd end = run_to_end();
  EXPECT_EQ(end.how, TrialEnd::How::complete) << end.trouble;
  EXPECT_EQ(end.value, 73);
}

// A stand-in for `lockstep` that says how it was called.
TEST_F(TrialStartTest, AJobIsTrainedInTheFolderOfItsTrial) {
  const base::Path program = folder_.path() / "lockstep";
  base::write_file(program, "#!/bin/sh\necho \"$@\"\nexit 2\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  options_.lockstep = program.string();
  std::string said;
  options_.say = [&](const std::string& line) { said = line; };
  EXPECT_EQ(run_to_end().how, TrialEnd::How::refused);
  const std::string folder = folder_.path().string();
  EXPECT_THAT(
      base::read_file(folder_.path() / "trials/7.out"),
      HasSubstr(base::text("train ", folder, "/job.json --run ", folder, "/trials/7 --here --set training.seed=")));
  EXPECT_THAT(said, HasSubstr("trial 7: training.seed="));
}

}  // namespace
}  // namespace lockstep::tune

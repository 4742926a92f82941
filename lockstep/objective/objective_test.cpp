// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/objective.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::objective {
namespace {

TEST(ObjectiveTest, EveryTaskOfTheJobDocumentHasOne) {
  for (size_t i = 0; i < choices_of(spec::Task{}).size(); ++i) {
    spec::Job job;
    job.task = static_cast<spec::Task>(i);
    EXPECT_NE(make_objective(job), nullptr) << name_of(job.task);
    EXPECT_FALSE(make_objective(job)->figures().empty()) << name_of(job.task);
  }
}

TEST(ObjectiveTest, ANetworkThatSaysOtherThingsIsAnError) {
  spec::Job job;
  job.model.name = "resnet18";
  job.task = spec::Task::detect;
  try {
    make_objective(job);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_EQ(
        std::string(error.what()),
        "model.name: resnet18 gives 'output', task detect learns from 'confidence', 'box', 'confidence2', 'delta'");
    EXPECT_NE(std::string(error.fix()).find("fastbox_resnet18"), std::string::npos);
  }
  job.model.name = "fastbox_resnet18";
  EXPECT_NE(make_objective(job), nullptr);
  job.task = spec::Task::classify;
  EXPECT_THROW(make_objective(job), base::Error);
}

}  // namespace
}  // namespace lockstep::objective

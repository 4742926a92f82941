// SPDX-License-Identifier: Apache-2.0
#include "lockstep/objective/objective.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep::objective

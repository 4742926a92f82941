// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::loader {
namespace {

spec::Job synthetic_job(int64_t samples, int64_t classes) {
  spec::Job job;
  job.data.train = "synthetic";
  job.data.samples = samples;
  job.model.classes = classes;
  return job;
}

TEST(CollectionsTest, TheDataDecidesTheNumberOfClasses) {
  const spec::Job job = synthetic_job(12, 3);
  const Collections all = open_collections(job);
  EXPECT_EQ(all.train.samples.size(), 12U);
  EXPECT_FALSE(all.validate);
  spec::Job open = job;
  open.model.classes = 0;
  EXPECT_EQ(resolve(open, all).model.classes, 3);
}

TEST(CollectionsTest, SyntheticDataWithoutItsNumbersIsAUserError) {
  try {
    open_collections(synthetic_job(0, 3));
    FAIL() << "opened";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.message(), testing::HasSubstr("data.samples"));
  }
}

}  // namespace
}  // namespace lockstep::loader

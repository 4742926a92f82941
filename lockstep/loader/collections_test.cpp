// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

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

TEST(CollectionsTest, ClassesAreWeighedByTheirFrequencyAtAMeanOfOne) {
  Collections all;
  all.train.classes = {"cat", "dog"};
  all.train.samples = {{"a", 0}, {"b", 1}, {"c", 1}, {"d", 1}};
  spec::Job job = synthetic_job(4, 2);
  EXPECT_TRUE(resolve(job, all).training.class_weights.empty());
  job.training.class_balance = 1;
  const spec::Job balanced = resolve(job, all);
  EXPECT_EQ(balanced.training.class_balance, 0);
  ASSERT_EQ(balanced.training.class_weights.size(), 2U);
  EXPECT_DOUBLE_EQ(balanced.training.class_weights[0].second, 2);  // 1 cat of 4
  EXPECT_DOUBLE_EQ(balanced.training.class_weights[1].second, 2.0 / 3);
  EXPECT_EQ(resolve(balanced, all), balanced);
  Collections three;  // scaled a second time these would have other last digits
  three.train.classes = {"cat", "dog", "eel"};
  for (const auto& [label, count] : {std::pair(0, 1), std::pair(1, 5), std::pair(2, 4)}) {
    for (int i = 0; i < count; ++i) three.train.samples.push_back({base::text(label, i), label});
  }
  const spec::Job of_three = resolve(job, three);
  EXPECT_EQ(resolve(of_three, three), of_three);
  job.training.class_weights = {{"dgo", 2}};
  try {
    resolve(job, all);
    FAIL() << "weighed";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("there is no class 'dgo'"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("dog"));
  }
}

}  // namespace
}  // namespace lockstep::loader

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/job_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/spec/job.h"

namespace lockstep::run {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

spec::Job small_job() {
  spec::Job job;
  job.name = "x";
  job.training.epochs = 3;
  return job;
}

std::vector<JobChange> changes(const spec::Job& was, const spec::Job& now) {
  return job_changes(spec::to_json(was), spec::to_json(now));
}

TEST(JobChangesTest, NamesEachChangedKeyWithBothValues) {
  spec::Job now = small_job();
  now.training.optimizer.lr = 0.02;
  now.data.mean = {0.5, 0.5, 0.5};
  const auto found = changes(small_job(), now);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].text(), "data.mean: [0.485,0.456,0.406] -> [0.5,0.5,0.5]");
  EXPECT_EQ(found[1].text(), "training.optimizer.lr: 0.1 -> 0.02");
  EXPECT_EQ(found[1].to_json().dump(-1), R"({"key":"training.optimizer.lr","was":0.1,"now":0.02})");
  EXPECT_TRUE(changes(now, now).empty());
}

TEST(JobChangesTest, KnowsWhatDoesNotMakeAnotherRunOfIt) {
  spec::Job now = small_job();
  now.limits.walltime = 3600;
  now.evaluation.every_epochs = 2;
  now.checkpoint.keep = 7;
  now.training.threads = 3;
  now.data.train = "elsewhere";
  const auto harmless = changes(small_job(), now);
  EXPECT_EQ(harmless.size(), 5U);
  for (const auto& change : harmless) EXPECT_EQ(change.kind, ChangeKind::harmless) << change.key;
  EXPECT_NO_THROW(refuse_changes(harmless, "run", 5));
  spec::Job longer = small_job();
  longer.training.epochs = 6;
  EXPECT_EQ(changes(small_job(), longer).at(0).kind, ChangeKind::length);
}

TEST(JobChangesTest, RefusesWhatMakesAnotherRunOfItByName) {
  spec::Job now = small_job();
  now.limits.walltime = 3600;
  now.training.label_smoothing = 0.1;
  now.training.clip_norm = 1;
  now.data.augment = spec::Augment::strong;
  try {
    refuse_changes(changes(small_job(), now), "runs/x", 15);
    FAIL() << "must be refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("runs/x"), HasSubstr("15 steps"), HasSubstr("training.clip_norm: 0 -> 1"),
                                    HasSubstr("training.label_smoothing: 0 -> 0.1"), HasSubstr("data.augment"),
                                    Not(HasSubstr("walltime"))));
    EXPECT_THAT(error.fix(), HasSubstr("--accept-changes"));
  }
}

TEST(JobChangesTest, WeightsByTheNamesOfClassesAreOneValue) {
  spec::Job weighed = small_job();
  weighed.training.class_weights = {{"cat", 2}, {"dog", 2.0 / 3}};
  spec::Job other = weighed;
  other.training.class_weights[0].second = 3;
  for (const auto& [was, now] :
       {std::pair(small_job(), weighed), std::pair(weighed, small_job()), std::pair(weighed, other)}) {
    const auto found = changes(was, now);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, ChangeKind::result);
  }
  EXPECT_THAT(changes(small_job(), weighed)[0].text(),
              testing::StartsWith("training.class_weights: {} -> {\"cat\":2,"));
  std::swap(other.training.class_weights[0], other.training.class_weights[1]);
  other.training.class_weights[1].second = 2;
  EXPECT_TRUE(changes(weighed, other).empty()) << "only their order is another";
  const base::Json read = base::parse_json(spec::to_json(weighed).dump(), "job.json");
  EXPECT_TRUE(job_changes(read, spec::to_json(weighed)).empty()) << "a file keeps every digit";
}

// A job.json of a version that did not know the key yet.
TEST(JobChangesTest, AKeyThatWasNotThereHadItsDefault) {
  base::Json was = spec::to_json(small_job());
  was["training"].erase("cutmix");
  was["limits"] = base::Json::object();
  EXPECT_TRUE(job_changes(was, spec::to_json(small_job())).empty());
  spec::Job now = small_job();
  now.training.cutmix = 1;
  EXPECT_EQ(job_changes(was, spec::to_json(now)).at(0).text(), "training.cutmix: 0 -> 1");
}

}  // namespace
}  // namespace lockstep::run

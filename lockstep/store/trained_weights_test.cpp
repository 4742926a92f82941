// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/trained_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/small_job.h"
#include "lockstep/store/run_version.h"
#include "lockstep/store/small_run.h"
#include "lockstep/store/store.h"

namespace lockstep::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TrainedWeightsTest, OfARunTheBestTheLastOrThoseOfAStep) {
  const FinishedRun run;
  EXPECT_EQ(find_weights(run.path()).weights, run.path() / "checkpoints/step-00000001/weights.safetensors");
  EXPECT_EQ(find_weights(run.path()).step, 1);
  EXPECT_EQ(find_weights(run.path(), "last").weights, run.path() / "weights.safetensors");
  EXPECT_EQ(find_weights(run.path(), "2").step, 2);
  EXPECT_THROW(find_weights(run.path(), "7"), base::Error);
  EXPECT_THROW(find_weights(run.root() / "none"), base::Error);
}

TEST(TrainedWeightsTest, OfAStoreAVersionWhoseChecksumsHold) {
  const FinishedRun run;
  const base::Path store = run.root() / "store";
  const Version version = add(store, "pets", RunVersion(run.path(), "", "").parts());
  const base::Path source = store / "pets:1";
  const TrainedWeights found = find_weights(source);
  EXPECT_EQ(found.weights, version.weights());
  EXPECT_EQ(found.job, version.job());
  EXPECT_TRUE(found.run.empty());
  EXPECT_THAT(found.which, HasSubstr("pets version 1 ("));
  EXPECT_THAT(class_names(found, spec::job_of(base::read_file(found.job))), ElementsAre("cat", "dog"));
  const TrainedWeights by_folder = find_weights(version.folder);
  EXPECT_EQ(by_folder.weights, version.weights());
  EXPECT_TRUE(by_folder.run.empty());  // nothing is written into it
  EXPECT_EQ(by_folder.trust, version.folder);
  EXPECT_THROW(find_weights(version.folder, "last"), base::Error);
  std::string bytes = base::read_file(version.weights());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  base::write_file(version.weights(), bytes);
  try {
    find_weights(source);
    ADD_FAILURE() << "took damaged weights";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_THAT(error.what(), HasSubstr("weights.safetensors has a wrong checksum"));
  }
}

}  // namespace
}  // namespace lockstep::store

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::results {
namespace {

struct TermsTest : testing::Test {
  TermsTest() {
    base::write_file(weights, "some weights");
    job.name = "pets";
    base::make_folders(paths.files());
  }
  Terms now() const { return terms_of(job, weights, {"cat", "dog"}, 5); }

  base::TemporaryFolder folder;
  base::Path weights = folder.path() / "weights.safetensors";
  ResultPaths paths{folder.path() / "results.jsonl"};
  spec::Job job;
};

TEST_F(TermsTest, KnowWhatAPredictionDependsOn) {
  const Terms before = now();
  EXPECT_THAT(before.model(), testing::MatchesRegex("pets@[0-9a-f]*"));
  job.training.epochs = 99;
  job.data.train = "elsewhere";
  job.model.weights = "start.pth";
  EXPECT_EQ(now().model(), before.model());
  EXPECT_EQ(difference(before, now()), "");
  job.data.image_size = 96;
  EXPECT_THAT(difference(before, now()), testing::HasSubstr("data.image_size was 224, now 96"));
  EXPECT_NE(now().model(), before.model());
  job.data.image_size = 224;
  base::write_file(weights, "others");
  EXPECT_THAT(difference(before, now()), testing::HasSubstr("the weights were those of sha256 "));
}

TEST_F(TermsTest, KnowTheTaskSectionAndTheContentOfItsTable) {
  job.task = spec::Task::instances;
  const Terms plain = now();
  job.instances.context = (folder.path() / "context.csv").string();
  base::write_file(job.instances.context, "cat,dog,0.1\n");
  const Terms before = now();
  EXPECT_NE(before.model(), plain.model());
  const std::string moved = (folder.path() / "moved.csv").string();
  std::filesystem::copy_file(job.instances.context, moved);
  job.instances.context = moved;
  EXPECT_EQ(now().model(), before.model());
  base::write_file(moved, "cat,dog,0.2\n");
  EXPECT_NE(now().model(), before.model());
  EXPECT_THAT(difference(before, now()), testing::HasSubstr("instances.context was \"sha256:"));
  base::write_file(moved, "cat,dog,0.1\n");
  job.instances.score_threshold = 0.3;
  EXPECT_THAT(difference(before, now()), testing::HasSubstr("instances.score_threshold was 0.05, now 0.3"));
}

TEST_F(TermsTest, AnotherModelIsRefusedWithTheDifference) {
  check_terms(paths, now());  // nothing was begun
  write_terms(paths, now());
  check_terms(paths, now());
  job.evaluation.views = spec::Views::flip;
  try {
    check_terms(paths, now());
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("was begun with another model: evaluation.views was \"center\", now"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("--again"));
  }
}

TEST(ResultPathsTest, LieBesideTheResultsFile) {
  const ResultPaths paths{"out/found.jsonl"};
  EXPECT_EQ(paths.page(), "out/found.html");
  EXPECT_EQ(paths.parts(), "out/found.files/parts");
}

TEST(ResultPathsTest, PicturesStayInTheirFolder) {
  EXPECT_EQ(picture_name("images/a/b.png", "images"), "a/b.png.jpg");
  EXPECT_EQ(picture_name("/data/../../etc/b.png", ""), "data/etc/b.png.jpg");
  EXPECT_EQ(picture_name("../b.png", ""), "b.png.jpg");
  EXPECT_EQ(thumbnail_name("0123456789abcdef0123"), "01/23456789abcdef.jpg");
}

}  // namespace
}  // namespace lockstep::results

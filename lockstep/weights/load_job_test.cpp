// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/load_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/weights/preprocessing.h"

namespace lockstep::weights {
namespace {

using testing::HasSubstr;

// A job file beside weights that say how their images are shown.
struct Files {
  Files() {
    TensorMetadata metadata;
    add_to(metadata, {224, {0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}, 0.875});
    write_safetensors(folder.path() / "w.safetensors", {}, metadata);
  }
  base::Path job(const std::string& more, const std::string& network = "resnet18") const {
    base::write_file(folder.path() / "job.json", R"({"name": "x", "data": {"train": "t"}, "model": {"name": ")" +
                                                     network + R"(", "weights": ")" +
                                                     (folder.path() / "w.safetensors").string() + R"("})" + more + "}");
    return folder.path() / "job.json";
  }
  base::TemporaryFolder folder;
};

TEST(LoadJobTest, ABareJobWithWeightsGetsTheirNormalisationAndTheRecipeInOneLine) {
  const Files files;
  const LoadedJob loaded = load_job(files.job(""));
  EXPECT_EQ(loaded.job.data.mean, (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(loaded.job.data.image_size, spec::ImageSize(256));  // the same scale, the whole image
  EXPECT_EQ(loaded.job.data.center_crop, 1);
  EXPECT_EQ(loaded.job.training.phases.size(), 2U);
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_THAT(loaded.notes[0], HasSubstr("recipe: the head for"));
  EXPECT_THAT(loaded.notes[0], HasSubstr("whole images at 256 pixels"));
  EXPECT_EQ(loaded.notes[0].find('\n'), std::string::npos);
  EXPECT_EQ(load_job(files.job(""), {"data.image_size=64"}).job.data.image_size, spec::ImageSize(64));
}

TEST(LoadJobTest, ANetworkOfOneSizeKeepsIt) {
  const Files files;
  EXPECT_EQ(load_job(files.job("", "vit_base_patch16_224")).job.data.image_size, spec::ImageSize(224));
}

TEST(LoadJobTest, AJobWithItsOwnRecipeKeepsItAndStillGetsTheNormalisation) {
  const Files files;
  const LoadedJob loaded = load_job(files.job(R"(, "training": {"epochs": 2, "optimizer": {"lr": 0.01}})"));
  EXPECT_TRUE(loaded.notes.empty());
  EXPECT_EQ(loaded.job.training.epochs, 2);
  EXPECT_EQ(loaded.job.training.optimizer.name, spec::OptimizerName::sgd);
  EXPECT_EQ(loaded.job.data.image_size, spec::ImageSize(224));
  EXPECT_EQ(loaded.job.data.std, (std::vector<double>{0.25, 0.25, 0.25}));
  const LoadedJob other = load_job(files.job(""), {"data.mean=[0.1,0.1,0.1]", "training.steps=1"});
  ASSERT_EQ(other.notes.size(), 1U);
  EXPECT_THAT(other.notes[0], HasSubstr("warning: data.mean is"));
}

TEST(LoadJobTest, WeightsThatSayNothingOfTheirNormalisationAreToldOf) {
  const Files files;
  write_safetensors(files.folder.path() / "w.safetensors", {});
  const LoadedJob loaded = load_job(files.job(""));
  ASSERT_EQ(loaded.notes.size(), 2U);
  EXPECT_THAT(loaded.notes[1], HasSubstr("does not say how its images were normalised"));
  EXPECT_EQ(load_job(files.job(""), {"data.mean=[0.5,0.5,0.5]"}).notes.size(), 1U);
}

TEST(LoadJobTest, WeightsThatAreEvaluatedSayItThemselves) {
  const Files files;
  base::write_file(files.folder.path() / "plain.json",
                   R"({"name": "x", "data": {"train": "t"}, "model": {"name": "linear"}, "training": {"steps": 1}})");
  const LoadedJob loaded = load_job_for(files.folder.path() / "w.safetensors", files.folder.path() / "plain.json");
  EXPECT_EQ(loaded.job.data.mean, (std::vector<double>{0.5, 0.5, 0.5}));
}

}  // namespace
}  // namespace lockstep::weights

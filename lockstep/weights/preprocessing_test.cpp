// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/preprocessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::weights {
namespace {

using base::Json;
using testing::HasSubstr;

const Preprocessing kHalf{224, {0.5, 0.5, 0.5}, {0.25, 0.25, 0.25}, 0.875};

TEST(PreprocessingTest, TravelsInTheFileOfTheWeights) {
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "w.safetensors";
  TensorMetadata metadata{{"source", "somewhere"}};
  add_to(metadata, kHalf);
  write_safetensors(file, {}, metadata);
  EXPECT_EQ(read_preprocessing(file), kHalf);
  write_safetensors(file, {}, {{"source", "somewhere"}});
  EXPECT_FALSE(read_preprocessing(file));
  EXPECT_FALSE(read_preprocessing(folder.path() / "none.safetensors"));
  metadata["mean"] = "[0.5, 0.5]";
  write_safetensors(file, {}, metadata);
  EXPECT_THROW(read_preprocessing(file), base::Error);
}

TEST(PreprocessingTest, FillsInWhatTheJobLeavesOutAndWarnsOfWhatItSaysOtherwise) {
  Json job = base::parse_json(R"({"data": {"train": "t", "image_size": 96, "mean": [0.498, 0.498, 0.498]}})", "job");
  EXPECT_TRUE(add_to(job, kHalf, "w").empty());  // rounded otherwise
  EXPECT_EQ(job.at("data").at("image_size").as_int(), 96);
  EXPECT_EQ(job.at("data").at("std"), Json::array_of(kHalf.std));
  EXPECT_EQ(job.at("data").at("center_crop").as_double(), 0.875);
  job = base::parse_json(R"({"data": {"train": "t", "mean": [0.485, 0.456, 0.406]}})", "job");
  const auto warnings = add_to(job, kHalf, "w.safetensors");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("data.mean is [0.485,0.456,0.406], but w.safetensors was trained with"));
  EXPECT_EQ(job.at("data").at("mean").items()[0].as_double(), 0.485);
}

TEST(PreprocessingTest, AWholeImageHasTheScaleOfTheCrop) {
  EXPECT_EQ(whole_image(kHalf), (Preprocessing{256, kHalf.mean, kHalf.std, 1}));
  EXPECT_EQ(whole_image(whole_image(kHalf)), whole_image(kHalf));
}

}  // namespace
}  // namespace lockstep::weights

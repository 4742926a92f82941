// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/image_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {
namespace {

using testing::HasSubstr;

Job job_with(const std::string& size) {
  return parse_job(
      base::parse_json(R"({"name": "a", "data": {"train": "x", "image_size": )" + size +
                           R"(}, "model": {"name": "linear"}, "training": {"epochs": 1, "global_batch": 8}})",
                       "job.json"));
}

std::string complaint(const std::string& size) {
  try {
    job_with(size);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

TEST(ImageSizeTest, IsASideOrHeightAndWidth) {
  EXPECT_EQ(job_with("96").data.image_size, ImageSize(96));
  EXPECT_EQ(job_with("[384, 1248]").data.image_size, ImageSize(384, 1248));
  EXPECT_EQ(to_json(job_with("[384, 1248]")).at("data").at("image_size").dump(-1), "[384,1248]");
  EXPECT_EQ(to_json(job_with("[64, 64]")).at("data").at("image_size").dump(-1), "64");
  EXPECT_EQ(to_text(ImageSize(384, 1248)), "384x1248");
}

TEST(ImageSizeTest, IsReadFromItsText) {
  EXPECT_EQ(image_size_from("384x1248"), ImageSize(384, 1248));
  EXPECT_EQ(image_size_from("96"), ImageSize(96));
  for (const char* none : {"", "x", "384x", "x9", "-3", "0x4", "384x12.5", "384 x 1248"})
    EXPECT_FALSE(image_size_from(none)) << none;
}

TEST(ImageSizeTest, RefusesWhatIsNoSize) {
  EXPECT_THAT(complaint("0"), HasSubstr("data.image_size"));
  EXPECT_THAT(complaint("[0, 3]"), HasSubstr("data.image_size"));
  EXPECT_THAT(complaint("[3]"), HasSubstr("data.image_size"));
  EXPECT_THAT(complaint("[3, 4.5]"), HasSubstr("data.image_size"));
  EXPECT_THAT(complaint("\"224\""), HasSubstr("pixels, or [height, width], is expected"));
}

}  // namespace
}  // namespace lockstep::spec

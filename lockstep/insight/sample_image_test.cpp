// SPDX-License-Identifier: Apache-2.0
#include "lockstep/insight/sample_image.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/insight/heat_map.h"

namespace lockstep::insight {
namespace {

TEST(SampleImageTest, IsWhatTheNetworkIsShownAndCanBeShownToPeopleAgain) {
  image::Image red(16, 16);
  for (size_t p = 0; p < red.pixels.size(); p += 3) red.pixels[p] = 200;
  const std::string file = image::encode_png(red);
  spec::Job job;
  job.data.image_size = 16;
  job.model.classes = 2;
  for (const auto pixels : {spec::Pixels::fp32, spec::Pixels::uint8}) {
    job.data.pixels = pixels;
    const auto task = task::make_task(job);
    const at::Tensor image = sample_image(*task, job.data, std::as_bytes(std::span(file.data(), file.size())));
    EXPECT_EQ(image.sizes(), (at::IntArrayRef{1, 3, 16, 16}));
    const image::Image shown = shown_view(image[0], job.data);
    EXPECT_NEAR(shown.row(8)[24], 200, 1);
    EXPECT_NEAR(shown.row(8)[25], 0, 1);
  }
  EXPECT_THROW(sample_image(*task::make_task(job), job.data, {}), base::Error);
}

}  // namespace
}  // namespace lockstep::insight

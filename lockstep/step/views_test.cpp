// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/views.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace lockstep::step {
namespace {

model::NamedTensors batch_of(const at::Tensor& images) {
  return {{"image", images}, {"label", at::ones({images.size(0)}, at::kLong)}};
}

TEST(ViewsTest, TheFirstViewIsTheImageItselfAndTheSecondItsMirror) {
  const at::Tensor images = at::arange(2 * 3 * 4 * 4, at::kFloat).reshape({2, 3, 4, 4});
  EXPECT_EQ(views_of(batch_of(images), spec::Views::center).size(), 1U);
  const auto views = views_of(batch_of(images), spec::Views::flip);
  ASSERT_EQ(views.size(), 2U);
  EXPECT_TRUE(at::equal(views[0].at("image"), images));
  EXPECT_EQ(views[1].at("image")[1][2][3][0].item<float>(), images[1][2][3][3].item<float>());
  EXPECT_TRUE(at::equal(views[1].at("image").flip({3}), images));
  EXPECT_TRUE(at::equal(views[1].at("label"), views[0].at("label")));
}

TEST(ViewsTest, CropsAreFourCornersOfTheWholeSizeBesidesTheCentreEachWithItsMirror) {
  at::Tensor images = at::ones({1, 3, 16, 16});
  images[0][0][0][0] = 100;  // the top left corner alone has it
  const auto views = views_of(batch_of(images), spec::Views::crops);
  ASSERT_EQ(static_cast<int64_t>(views.size()), num_views(spec::Views::crops));
  std::vector<bool> has_corner;
  for (const auto& view : views) {
    EXPECT_EQ(view.at("image").sizes(), images.sizes());
    has_corner.push_back(view.at("image").max().item<float>() > 2);
  }
  EXPECT_EQ(has_corner, (std::vector<bool>{true, true, true, true, false, false, false, false, false, false}));
}

}  // namespace
}  // namespace lockstep::step

// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_view.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

spec::Job job_with(const spec::ImageSize& canvas) {
  spec::Job job;
  job.task = spec::Task::instances;
  job.data.image_size = canvas;
  return job;
}

std::pair<int64_t, int64_t> size_of(const image::View& view) {
  return {view.y.num_outputs, view.x.num_outputs};
}

TEST(InstancesView, KeepsTheAspectRatioWithinItsLimits) {
  const spec::Job job = job_with({1344, 1344});
  EXPECT_EQ(size_of(instances_view(640, 480, job, {})), std::pair(800L, 1066L));  // torchvision's sizes
  EXPECT_EQ(size_of(instances_view(480, 640, job, {})), std::pair(1066L, 800L));
  EXPECT_EQ(size_of(instances_view(1000, 100, job, {})), std::pair(133L, 1333L));
  EXPECT_EQ(size_of(instances_view(50000, 1, job, {})), std::pair(1L, 1333L));
  EXPECT_EQ(size_of(instances_view(480, 640, job_with({800, 1344}), {})), std::pair(800L, 600L)) << "the canvas";
}

TEST(InstancesView, TrainingScalesAndMirrorsWithinTheCanvas) {
  spec::Job job = job_with({200, 200});
  job.instances.min_size = 100;
  job.instances.max_size = 150;
  job.instances.scale_min = 0.5;
  job.instances.scale_max = 4;
  std::set<int64_t> heights;
  int64_t mirrored = 0, cropped = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const image::View view = instances_view(300, 300, job, base::Random(1, 0, i));
    EXPECT_LE(view.x.num_outputs, 200);
    EXPECT_GE(view.x.num_outputs, 50);
    EXPECT_NEAR(view.x.scale, view.y.scale, view.x.scale / 50);
    EXPECT_GE(view.x.begin, 0);
    EXPECT_LE(view.x.begin + view.x.scale * 200, view.x.num_outputs == 200 ? 300.001 : 1e9);
    heights.insert(view.y.num_outputs);
    mirrored += view.x.reversed;
    cropped += view.x.begin > 0;
    EXPECT_EQ(view, instances_view(300, 300, job, base::Random(1, 0, i)));
  }
  EXPECT_GT(heights.size(), 50U);
  EXPECT_NEAR(static_cast<double>(mirrored), 100, 30);
  EXPECT_GT(cropped, 50);
  job.data.augment = spec::Augment::none;
  EXPECT_EQ(instances_view(300, 300, job, base::Random(1)), instances_view(300, 300, job, {}));
}

TEST(InstancesView, AnImageGoesToTheSmallestCanvasThatHoldsAllOfItsViews) {
  spec::Job job = job_with({1344, 1344});
  EXPECT_EQ(fitting_canvas(640, 480, job), 0);
  job.instances.canvases = {"800x1344", "1344x800", "800x1088"};
  EXPECT_EQ(fitting_canvas(640, 480, job), 3);  // 800 x 1066
  EXPECT_EQ(fitting_canvas(640, 360, job), 1);  // 749 x 1333
  EXPECT_EQ(fitting_canvas(480, 640, job), 2);
  EXPECT_EQ(fitting_canvas(500, 500, job), 3);
  job.instances.scale_max = 1.2;
  EXPECT_EQ(fitting_canvas(640, 480, job), 0) << "960 x 1279 at most";
  job.data.augment = spec::Augment::none;
  EXPECT_EQ(fitting_canvas(640, 480, job), 3);
}

TEST(InstancesView, AFixedFactorCountsForViewAndCanvasAlike) {
  spec::Job job = job_with({1344, 1344});
  job.instances.canvases = {"400x544"};
  job.instances.scale_min = job.instances.scale_max = 0.5;
  const image::View view = instances_view(640, 480, job, base::Random(1));
  EXPECT_EQ(size_of(view), std::pair(400L, 533L));
  EXPECT_EQ(fitting_canvas(640, 480, job), 1);
  EXPECT_EQ(size_of(instances_view(640, 480, job, {})), std::pair(800L, 1066L)) << "an evaluation scales nothing";
  job.instances.scale_min = job.instances.scale_max = 1;
  EXPECT_EQ(size_of(instances_view(640, 480, job, base::Random(1))), std::pair(800L, 1066L));
}

TEST(InstancesView, AListMayBeDrawnInAnotherResolution) {
  const image::View view = instances_view(320, 240, job_with({1344, 1344}), {});
  const image::View list = view_of_list(view, {.width = 320, .height = 240}, 640, 480);
  EXPECT_EQ(list.x.num_outputs, view.x.num_outputs);
  EXPECT_DOUBLE_EQ(list.x.scale, 2 * view.x.scale);
  EXPECT_EQ(list.x.high, 640);
  EXPECT_EQ(view_of_list(view, {.width = 320, .height = 240}, 320, 240), view);
  EXPECT_THROW(view_of_list(view, {.width = 320, .height = 240}, 240, 320), base::Error);
}

}  // namespace
}  // namespace lockstep::task

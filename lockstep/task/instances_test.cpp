// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances.h"

#include <gtest/gtest.h>

namespace lockstep::task {
namespace {

TEST(InstancesTest, ADrawnSampleHasObjectsInsideOfItsImage) {
  spec::Job job;
  job.task = spec::Task::instances;
  job.data.image_size = spec::ImageSize(64, 96);
  job.model.classes = 3;
  job.instances.slots = 5;
  job.instances.mask_size = 28;
  const auto task = make_task(job);
  std::vector<FieldValues> values;
  std::vector<std::byte*> pointers;
  for (const Field& field : task->fields()) values.push_back({field, std::vector<std::byte>(field.bytes())});
  for (auto& value : values) pointers.push_back(value.bytes.data());
  task->encoder()->draw(0, base::Random(1, 2, 3), pointers);
  const float* shown = values[1].values<float>();
  EXPECT_EQ(shown[0], 64);
  EXPECT_EQ(shown[1], 96);
  int64_t objects = 0;
  for (int64_t i = 0; i < 5; ++i) {
    const float* box = values[2].values<float>() + 4 * i;
    const int64_t label = values[3].values<int64_t>()[i];
    EXPECT_LE(label, 3);
    EXPECT_EQ(label > 0, box[2] > box[0] && box[3] > box[1]);
    EXPECT_TRUE(box[0] >= 0 && box[1] >= 0 && box[2] <= 96 && box[3] <= 64);
    EXPECT_EQ(values[4].values<uint8_t>()[i * 28 * 28], label > 0 ? 1 : 0);
    objects += label > 0 ? 1 : 0;
  }
  EXPECT_GT(objects, 0);
  task->encoder()->blank(pointers);
  EXPECT_EQ(shown[0], 0);
}

}  // namespace
}  // namespace lockstep::task

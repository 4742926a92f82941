// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::task {
namespace {

spec::Job pets(const std::string& network) {
  spec::Job job;
  job.task = spec::Task::instances;
  job.model.name = network;
  job.instances.masks = network.starts_with("mask");
  job.data.image_size = 64;
  job.instances.slots = 2;
  return job;
}

base::Json record_of(const Task& task, const std::vector<float>& scores, bool has_masks) {
  const int64_t id = 3;
  const std::vector<float> shown{50, 100}, boxes{10, 20, 30, 40, 0, 0, 50, 25}, labels{2, 1}, masks(2 * 28 * 28, 1);
  const auto bytes = std::as_bytes(std::span(shown));
  const std::vector<FieldValues> fields{{{.name = "shown", .shape = {2}}, {bytes.begin(), bytes.end()}}};
  const std::vector<std::string> annotations{R"({"width": 200, "height": 100})"};
  Rows rows{
      std::span(&id, 1), fields, {{"boxes", 8, boxes}, {"scores", 2, scores}, {"labels", 2, labels}}, annotations};
  if (has_masks) rows.outputs.push_back({"masks", 2 * 28 * 28, masks});
  return task.record(rows, 0, 1);
}

TEST(Instances, RecordsObjectsInPixelsOfTheImage) {
  const auto task = make_instances(pets("maskrcnn_resnet18_fpn"), {"cat", "dog"});
  const base::Json record = record_of(*task, {0.25F, 0.75F}, true);
  EXPECT_EQ(record.at("width").as_int(), 200);
  ASSERT_EQ(record.at("objects").size(), 2U) << "all of them, whatever --top says";
  const base::Json& cat = record.at("objects").items()[0];
  EXPECT_EQ(cat.at("class").as_string(), "cat");
  EXPECT_EQ(cat.at("label").as_int(), 0);
  EXPECT_EQ(cat.at("score").as_double(), 0.75);
  EXPECT_EQ(cat.at("box").dump(-1), "[0,0,100,50]");
  EXPECT_EQ(cat.at("segmentation").at("size").dump(-1), "[100,200]");
  EXPECT_FALSE(cat.at("segmentation").at("counts").as_string().empty());
  EXPECT_EQ(task->line(record), "1 object: cat 0.75; 1 below 0.5");
  EXPECT_EQ(task->columns(0), (std::vector<std::string>{"objects", "classes", "scores", "boxes"}));
  EXPECT_EQ(task->cells(record, 0),
            (std::vector<std::string>{"2", "cat|dog", "0.7500|0.2500", "0.0 0.0 100.0 50.0|20.0 40.0 40.0 40.0"}));
}

TEST(Instances, RecordsNumbersWithFewDigits) {
  const auto task = make_instances(pets("fasterrcnn_resnet18_fpn"), {"cat", "dog"});
  const base::Json record = record_of(*task, {0.9402921F, 0.2F}, false);
  EXPECT_EQ(record.at("objects").items()[0].at("score").dump(-1), "0.940292");
}

TEST(Instances, AnImageMayShowNothing) {
  const auto task = make_instances(pets("fasterrcnn_resnet18_fpn"), {"cat", "dog"});
  const base::Json record = record_of(*task, {0, 0}, false);
  EXPECT_EQ(record.at("objects").size(), 0U);
  EXPECT_EQ(task->line(record), "no objects");
}

TEST(Instances, DrawsWhatIsLikely) {
  const auto task = make_instances(pets("maskrcnn_resnet18_fpn"), {"cat", "dog"});
  const base::Json record = record_of(*task, {0.25F, 0.75F}, true);
  image::Image image(100, 50);  // half of its size
  EXPECT_TRUE(task->draw(record, image));
  const auto is_black = [&](int64_t x, int64_t y) {
    const uint8_t* pixel = image.row(y) + 3 * x;
    return pixel[0] == 0 && pixel[1] == 0 && pixel[2] == 0;
  };
  EXPECT_FALSE(is_black(25, 20)) << "the mask of the cat";
  EXPECT_TRUE(is_black(70, 40)) << "nothing there";
}

TEST(Instances, OfBoxesAloneHasNoMasks) {
  const auto boxes = make_instances(pets("fasterrcnn_resnet50_fpn"), {"cat", "dog"});
  EXPECT_EQ(boxes->report_words().at("validation").as_string(), "box_ap");
  EXPECT_EQ(boxes->fields().size(), 4U);
  EXPECT_EQ(boxes->num_outputs(), 2);
  EXPECT_EQ(boxes->classes(), Classes::of_objects);
  EXPECT_EQ(make_instances(pets("maskrcnn_resnet50_fpn"), {})->fields().size(), 5U);
}

}  // namespace
}  // namespace lockstep::task

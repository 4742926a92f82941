// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/coco_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/results/record.h"

namespace lockstep::results {
namespace {

std::string line_of(const std::string& path, const std::string& record) {
  return record_line({path, "abc", {3, "x"}, "m", "t"}, base::parse_json(record, "record")) + "\n";
}

struct CocoFormTest : testing::Test {
  CocoFormTest() {
    base::write_file(results, line_of("set/a/1.jpg", R"({"width": 8, "height": 4, "objects": [
            {"class": "dog", "label": 1, "score": 0.75, "box": [1, 1.5, 2, 2],
             "segmentation": {"size": [4, 8], "counts": "0123"}},
            {"class": "bird", "label": 2, "score": 0.5, "box": [0, 0, 1, 1]}]})") +
                                  failed_line({"set/bad.jpg", "", {}, "m", "t"}, "no image") + "\n" +
                                  line_of("set/b/1.jpg", R"({"width": 2, "height": 2, "objects": []})"));
  }
  base::TemporaryFolder folder;
  base::Path results = folder.path() / "results.jsonl", to = folder.path() / "coco.json";
};

TEST_F(CocoFormTest, NumbersImagesAndClassesAndTellsWhich) {
  const CocoSummary summary = write_coco(results, {to, {}, {"cat", "dog"}});
  EXPECT_EQ(summary.images, 2);
  EXPECT_EQ(summary.objects, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(base::read_json(to).dump(-1), R"([{"image_id":1,"category_id":2,"bbox":[1,1.5,2,2],"score":0.75,)"
                                          R"("segmentation":{"size":[4,8],"counts":"0123"}},)"
                                          R"({"image_id":1,"category_id":3,"bbox":[0,0,1,1],"score":0.5}])");
  EXPECT_EQ(summary.table, folder.path() / "coco.images.json");
  EXPECT_EQ(base::read_json(summary.table).dump(-1),
            R"({"images":[{"id":1,"file_name":"set/a/1.jpg","width":8,"height":4},)"
            R"({"id":2,"file_name":"set/b/1.jpg","width":2,"height":2}],)"
            R"("categories":[{"id":1,"name":"cat"},{"id":2,"name":"dog"},{"id":3,"name":"bird"}]})");
}

TEST_F(CocoFormTest, TakesTheNumbersOfAList) {
  const base::Path list = folder.path() / "gt.json";
  base::write_file(list, R"({"images": [{"id": 42, "file_name": "a/1.jpg"}], "annotations": [{"id": 1}],
                             "categories": [{"id": 18, "name": "dog"}]})");
  const CocoSummary summary = write_coco(results, {to, list, {}});
  EXPECT_EQ(base::read_json(to).items().size(), 1U);
  EXPECT_EQ(base::read_json(to).items()[0].at("image_id").as_int(), 42);
  EXPECT_EQ(base::read_json(to).items()[0].at("category_id").as_int(), 18);
  EXPECT_EQ(summary.unlisted_images, 1);  // b/1.jpg: its name alone is not in the list
  EXPECT_EQ(summary.unlisted_image, "set/b/1.jpg");
  EXPECT_EQ(summary.unlisted_class, "bird");
  EXPECT_TRUE(summary.table.empty());
}

TEST_F(CocoFormTest, IsOfObjectsOnly) {
  base::write_file(results, line_of("a.jpg", R"({"classes": []})"));
  EXPECT_THROW(write_coco(results, {to, {}, {}}), base::Error);
  EXPECT_FALSE(base::is_there(to));
  const base::Path list = folder.path() / "gt.json";
  base::write_file(list, R"({"images": []})");
  EXPECT_THROW(write_coco(results, {to, list, {}}), base::Error);
}

}  // namespace
}  // namespace lockstep::results

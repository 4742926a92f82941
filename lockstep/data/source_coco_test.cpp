// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/source_coco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/data/decode.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

class CocoSourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  base::TemporaryFolder folder_;
  std::string picture_ = encode_jpeg(Image(30, 20), 90);
};

TEST_F(CocoSourceTest, JoinsTheListsOfAPart) {
  put("train2017/1.jpg", picture_);
  put("val2017/2.jpg", picture_);
  const std::string images =
      R"("images": [{"id": 1, "file_name": "1.jpg", "width": 30, "height": 20}, {"id": 9, "file_name": "absent.jpg"}])";
  put("annotations/instances_train2017.json",
      "{" + images +
          R"(, "categories": [{"id": 5, "name": "dog"}], "annotations": [{"image_id": 1, "category_id": 5, "bbox": [1, 2, 3, 4]}]})");
  put("annotations/captions_train2017.json",
      "{" + images + R"(, "annotations": [{"image_id": 1, "caption": "a dog"}]})");
  put("annotations/instances_val2017.json",
      R"({"images": [{"id": 2, "file_name": "2.jpg"}], "categories": [{"id": 5, "name": "dog"}]})");
  ASSERT_TRUE(looks_like_coco({.path = folder_.path()}));
  const auto source = open_coco({.path = folder_.path()});
  EXPECT_THAT(source->classes(), ElementsAre("dog"));
  const auto size = static_cast<int64_t>(picture_.size());
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"train2017/1.jpg", kNoLabel, Part::train, size},
                                             SourceSample{"val2017/2.jpg", kNoLabel, Part::validate, size}));
  EXPECT_EQ(source->load(0)[1].bytes,
            R"({"image_id":"1","file_name":"1.jpg","width":30,"height":20,"captions":["a dog"],)"
            R"("objects":[{"label":0,"category":"dog","bbox":[1,2,3,4]}]})");
  EXPECT_EQ(source->load(1)[1].bytes, R"({"image_id":"2","file_name":"2.jpg","width":30,"height":20})");
  EXPECT_EQ(source->refused().size(), 2u);  // absent, in two lists
}

TEST_F(CocoSourceTest, FindsThePicturesOfOneFileBesideIt) {
  put("annotations/heads.json", R"({"images": [{"id": 1, "file_name": "a.jpg"}]})");
  put("images/a.jpg", picture_);
  const SourceOptions options{.path = folder_.path() / "annotations/heads.json"};
  ASSERT_TRUE(looks_like_coco(options));
  EXPECT_EQ(open_coco(options)->samples()[0].name, "images/a.jpg");
  put("annotations/lost.json", R"({"images": [{"id": 1, "file_name": "b.jpg"}]})");
  EXPECT_THROW(open_coco({.path = folder_.path() / "annotations/lost.json"}), base::Error);
}

}  // namespace
}  // namespace lockstep::data
